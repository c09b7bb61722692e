HIDABLE: dict[str, int]
GRPC_CODES: tuple[str, ...]
