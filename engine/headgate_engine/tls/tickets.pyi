class TicketKeys:
    period_s: int
    number: int
    def __init__(self, secret: bytes, number: int, period_s: int = 7200) -> None: ...
    @staticmethod
    def number_now(period_s: int = 7200) -> int:
        """Return the number of the period that it is now."""
    def given(self) -> tuple[int, bytes]:
        """Return number and secret of the period that it is now: what another process needs for the same keys."""
    def names(self) -> tuple[bytes, bytes]:
        """Return the names of the current key and of the one before it; the same twice before the first period ends."""
    def move(self, now_s: int) -> None:
        """Derive the keys of this time (seconds since 1970). Earlier ones do not come back."""
