class Http2Limits:
    """Numbers of one side of a connection. limits.pxd has its C interface.

    Windows, frames and lists are bytes; `ping_interval`, `ping_timeout` and `settings_timeout` are seconds.
    """

    window: int
    max_window: int
    connection_window: int
    max_frame: int
    max_streams: int
    max_list: int
    max_fields: int
    max_continuations: int
    resets: int
    resets_per_second: int
    oddities: int
    oddities_per_second: int
    ping_interval_ns: int
    ping_timeout_ns: int
    settings_timeout_ns: int
    def __init__(
        self,
        window: int = 65536,
        *,
        max_window: int | None = None,
        connection_window: int = 1048576,
        max_frame: int = 16384,
        max_streams: int = 200,
        max_list: int = 16384,
        max_fields: int = 256,
        max_continuations: int = 32,
        resets: int = 500,
        resets_per_second: int = 33,
        oddities: int = 1000,
        oddities_per_second: int = 100,
        ping_interval: float = 0.0,
        ping_timeout: float = 20.0,
        settings_timeout: float = 60.0,
    ) -> None: ...
