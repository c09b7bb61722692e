"""Signatures, keys, encryption and password hashes. This package does no I/O and knows nothing of HTTP."""
