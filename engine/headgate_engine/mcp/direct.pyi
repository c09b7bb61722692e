from headgate_engine.link.backend import Backend
from headgate_engine.link.handler import HandlerBackend
from headgate_engine.mcp.settings import DirectTarget, Service

LISTS: dict[str, str]
OWN_FIELDS: tuple[bytes, ...]
OWN_FIELDS_AND_VERSION: tuple[bytes, ...]
MAX_OWNERS: int

class DirectBackend(Backend):
    """Answers plain calls of one target itself; `handler` gets the others, some of them with a call to the target
    begun.
    """

    def __init__(self, handler: HandlerBackend, target: DirectTarget, service: Service) -> None: ...
    @property
    def target(self) -> DirectTarget | None:
        """The one target; None where there are several."""

class FederatedBackend(DirectBackend):
    """Answers plain calls of several targets behind one session. `targets`: by name, those whose calls the engine can
    make; `prefixed`: names of tools and prompts carry their target.
    """

    def __init__(
        self, handler: HandlerBackend, targets: dict[str, DirectTarget], service: Service, *, prefixed: bool
    ) -> None: ...
