PROTECTED: tuple[bytes, ...]
FORBIDDEN: frozenset[bytes]
