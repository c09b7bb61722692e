from headgate_engine.load.histogram import LatencyHistogram

class LoadLedger:
    """What became of the requests of a run. Requests that were due before `since_ns` are not counted."""

    since_ns: int
    until_ns: int
    """The end of the run; `in_time` counts answers until then."""
    @property
    def latency(self) -> LatencyHistogram:
        """From when a request was due to the end of its answer, in ns.

        Requests that were given up count with the time that they had waited; those that failed at once do not count.
        """
    @property
    def first_token(self) -> LatencyHistogram:
        """From when a request was due to the first token of its stream."""
    @property
    def between(self) -> LatencyHistogram:
        """Between two tokens of a stream."""
    @property
    def lag(self) -> LatencyHistogram:
        """How late the generator itself was: from when a request was due until it left, where a connection was free."""
    @property
    def window(self) -> LatencyHistogram:
        """As `latency`, since somebody cleared it."""
    @property
    def good(self) -> int: ...
    @property
    def in_time(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def sent(self) -> int: ...
    @property
    def bytes_read(self) -> int:
        """Bytes that came from the network, before TLS is taken off."""
    @property
    def tokens(self) -> int:
        """Events of streams that bring a piece of text, thought or arguments."""
    @property
    def reconnects(self) -> int:
        """Connections that were opened again."""
    @property
    def errors(self) -> dict[str, int]:
        """Requests that failed, by kind."""
