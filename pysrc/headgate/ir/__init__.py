"""What a configuration means, frozen: no parsing, no I/O. The same from a file or from a cluster."""
