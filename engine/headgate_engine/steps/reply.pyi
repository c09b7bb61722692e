from headgate_engine.context.request import Reply
from headgate_engine.plan.step import Step

class ReplyStep(Step):
    """Answers every request with one Reply."""

    def __init__(self, name: str, reply: Reply) -> None: ...
