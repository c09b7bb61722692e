"""Application protocols as pure functions on values. This package opens no sockets and reads no clocks."""
