"""HTTP/2 (RFC 9113) without input and output: HPACK, frames, heads, windows and the connection of either role."""
