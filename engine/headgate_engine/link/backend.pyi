from headgate_engine.context.request import Reply
from headgate_engine.link.contract import RequestSink
from headgate_engine.plan.plans import Destination

HOST: PoolBackend

class RoutedRequest(RequestSink):
    """A request as a backend sees it; C face only."""

class Backend(Destination):
    """What answers requests: the interface of backend.pxd."""

    @property
    def wants_body(self) -> bool: ...
    @property
    def serves_half_closed(self) -> bool: ...
    @property
    def opens_tunnels(self) -> bool: ...
    @property
    def failure(self) -> Reply | None: ...
    @property
    def too_long(self) -> Reply | None: ...

class PoolBackend(Backend):
    """Forwards to the pool of one host, or to that of one of several endpoints. It has no state: use HOST."""

class InvalidBackend(Backend):
    """Answers `failure` to every request."""

    def __init__(self, failure: Reply) -> None: ...
