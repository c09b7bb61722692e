from headgate_engine.log.fields import LogFields

FIELDS: tuple[str, ...]
ORDER: tuple[str, ...]
MAX_REMOVED: int

class RequestFields:
    """The fields of a finished request. remove: keys to leave out (ValueError for more than 32); fields: keys that
    expressions add, and the filter of requests.
    """

    def __init__(self, remove: tuple[str, ...] = (), fields: LogFields | None = None) -> None: ...
    @property
    def remove(self) -> tuple[str, ...]: ...
