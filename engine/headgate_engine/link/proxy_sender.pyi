from collections.abc import Callable, Iterable

from headgate_engine.link.pool import ClientPools, Pool

SIGNATURE: bytes

def header(
    version: int,
    source: tuple[str, int] | None = None,
    destination: tuple[str, int] | None = None,
    extensions: Iterable[tuple[int, bytes]] = (),
) -> bytes:
    """Return a PROXY protocol header: host and port of the client and of what it connected to, and extensions (type,
    value) of version 2. Without both addresses, or where they are not of IP, it says that nothing is known.
    """

class ProxySender(ClientPools):
    """Gives each client's connection a pool of its own, whose connections begin with a header that says whose they are.

    open: makes a pool whose connections begin with these bytes. Raises ValueError for a version that there is not.
    """

    def __init__(self, version: int, open: Callable[[bytes], Pool]) -> None: ...
    @property
    def version(self) -> int: ...
