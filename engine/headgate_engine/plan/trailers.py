"""How a step announces that trailers follow a stream.

`ctx.dynamic[TRAILERS]` is then an object whose `fields(ctx)` returns them as pairs of bytes, when the stream has ended.
"""

TRAILERS = "trailers of a stream"
