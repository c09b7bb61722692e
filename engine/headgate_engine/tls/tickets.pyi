class TicketKeys:
    period_s: int
    number: int
    def __init__(self, secret: bytes, number: int, period_s: int = 7200) -> None: ...
    @staticmethod
    def number_now(period_s: int = 7200) -> int:
        """Return the number of the period that it is now, counted from 1970 in periods of `period_s` seconds."""
    def given(self) -> tuple[int, bytes]:
        """Return number and secret of the period that it is now: what another process needs for the same keys."""
