from headgate_engine.context.request import RequestContext, TokenUsage

class RealtimeUse:
    """The use of a virtual key by a realtime conversation. Its limits are asked before each answer.

    After close() nothing may be called any more.
    """

    def __init__(self, ctx: RequestContext) -> None: ...
    @property
    def over(self) -> bool:
        """Limits have no more."""
    @property
    def assumed(self) -> int:
        """The most tokens of an answer that nothing bounds."""
    def bounded(self, most: int) -> bool:
        """Note how many tokens an answer may have whose length its request does not say. Return whether they fit."""
    def said(self, tokens: int) -> bool:
        """Add tokens to the prompt of the next answer. Return whether they fit."""
    def asks(self, most: int, name: str | None = None) -> bool:
        """Reserve for an answer of at most `most` tokens, 0: nothing is said. Return whether it fits.

        name: the id of the event that asks.
        """
    def refused(self, name: str | None) -> None:
        """An answer will not come that an event of that id has asked for, or the last one that was asked for."""
    def begun(self) -> None:
        """An answer has begun, whoever asked for it."""
    def heard(self, tokens: int) -> None:
        """Note how much of the answer under way has come, in case nobody tells its usage."""
    def done(self, event: bytes) -> bool:
        """Settle an answer with the usage of its last event, and reserve for the next. Return whether that fits."""
    def note(self, usage: TokenUsage) -> None:
        """Have the whole conversation priced answer by answer, as it was settled."""
    def close(self) -> None:
        """The conversation has ended: an answer under way is charged with its prompt and what has come of it."""
