class ModelPattern:
    """A name, or with one `*` at its start or end, or `*`; ValueError for anything else."""

    def __init__(self, text: str) -> None: ...
    @property
    def text(self) -> str: ...
    def matches(self, model: str) -> bool:
        """Whether the model's name fits."""
