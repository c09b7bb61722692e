from headgate_engine.plan.step import Step

class CredentialStep(Step):
    """Replaces a request field by a configured credential. Raises ValueError for an invalid field value."""

    def __init__(self, header: str, value: bytes) -> None: ...
