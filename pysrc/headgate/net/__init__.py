"""Outbound connections: the only place that opens sockets to others."""
