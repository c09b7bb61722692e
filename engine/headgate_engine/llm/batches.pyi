class BatchModels:
    """What a batch says of models. batches.pxd has its C interface."""

    @property
    def names(self) -> list[bytes]: ...

def models_of(body: bytes) -> BatchModels | None:
    """Return the models of a batch of Anthropic's, None for what is no JSON object with `requests`.

    Raises ValueError, with what is wrong, for requests that name no model, name it twice, or name too many models.
    """

def is_batch(method: str, path: bytes) -> bool:
    """Return whether a request makes a batch of Anthropic's."""

BATCH: str
MOST_MODELS: int

def looked_at(body: bytes) -> tuple[BatchModels | str | None, bytes]:
    """Return what models_of() does, or what is wrong, and the body: for a body that is read beside the loop."""
