NOT_IN_TRAILERS: frozenset[bytes]
