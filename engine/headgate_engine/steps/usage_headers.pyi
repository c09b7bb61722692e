from headgate_engine.context.request import RequestContext
from headgate_engine.plan.step import Step

PREFIX: bytes
TRAILERS: str

class UsageHeadersStep(Step):
    """Tells clients what answers of models cost, how many tokens they have, and the times of gateway and provider."""

    def __init__(self, cost: bool, tokens: bool, overhead: bool, generation: bool) -> None: ...
    def fields(self, ctx: RequestContext) -> list[tuple[bytes, bytes]]:
        """Return the fields, by what is known now."""
