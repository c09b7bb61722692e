from headgate_engine.context.request import RequestContext
from headgate_engine.link.backend import PoolBackend
from headgate_engine.link.dynamic import Destinations

class PickedBackend(PoolBackend):
    """Forwards to the endpoints that were noted for a request, one for each attempt; without any as a PoolBackend.

    places: pools of endpoints that are not known. None: one of the plan's own has to be picked.
    """

    def __init__(self, places: Destinations | None = None) -> None: ...

def note_picked(ctx: RequestContext, places: list[bytes]) -> None:
    """Note the endpoints for a request, as `host:port`, the best first. Where there are several, a failed attempt is
    followed by one at the next, if the route retries nothing itself."""

def picked_places(ctx: RequestContext) -> list[bytes] | None:
    """Return the endpoints that were noted for a request."""
