from headgate_engine.plan.step import Step

class CredentialStep(Step):
    """Replaces a request field with a configured credential. ValueError for values that cannot stand in a field."""

    def __init__(self, header: str, value: bytes) -> None: ...
