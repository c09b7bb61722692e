"""OpenSSL, as Python has loaded it (https://docs.openssl.org/3.0/man3/)."""

NAMES: tuple[str, ...]
SYSTEM_LIBRARY: bytes

def version() -> str:
    """Return name and version of the library that is loaded. Raises TlsError where there is no OpenSSL 3."""
