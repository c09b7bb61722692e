"""Application protocols as values: no sockets, no clocks."""
