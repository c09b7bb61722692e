PROTECTED: tuple[bytes, ...]
FORBIDDEN_TRAILERS: frozenset[bytes]
