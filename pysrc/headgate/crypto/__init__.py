"""Signatures, keys and password hashes: no I/O, nothing of HTTP."""
