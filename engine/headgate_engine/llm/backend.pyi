from headgate_engine.link.backend import Backend
from headgate_engine.llm.router import ModelRouter

class LlmBackend(Backend):
    """Sends requests to the providers of the models of `router`."""

    def __init__(self, router: ModelRouter) -> None: ...
    @property
    def router(self) -> ModelRouter: ...
