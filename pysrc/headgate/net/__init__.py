"""Outbound connections and listening sockets. No other package opens sockets to other hosts."""
