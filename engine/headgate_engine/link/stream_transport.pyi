from typing import Any

class StreamTransport:
    """The transport of what is in a tunnel on a stream of HTTP/2; it is made by link.connect alone."""

    def set_protocol(self, protocol: Any) -> None: ...
    def get_protocol(self) -> Any: ...
    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """`peername` and `sockname` of the connection. There is no socket."""
    def is_closing(self) -> bool: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """The limits are zero, whatever is asked for: the protocol hears when nothing is queued any more."""
    def get_write_buffer_limits(self) -> tuple[int, int]: ...
    def get_write_buffer_size(self) -> int:
        """Bytes that wait for the windows of the stream, or for the connection."""
    def write(self, data: bytes) -> None: ...
    def can_write_eof(self) -> bool: ...
    def write_eof(self) -> None:
        """Ends this half of the stream."""
    def close(self) -> None:
        """Ends the stream behind what is queued."""
    def abort(self) -> None:
        """Resets the stream (CANCEL)."""
    def go_on(self) -> None:
        """Hands on what waits; called by the loop."""
