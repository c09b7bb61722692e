import re
from collections.abc import Mapping
from typing import Protocol

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.llm.public import PublicModel

MARK: bytes
NAME_MARK: bytes
STEM: bytes
LOOSE: frozenset[str]
SESSIONS: tuple[bytes, ...]
MAX_SESSION: int
SESSION_PART: re.Pattern[bytes]
UPLOADS: tuple[bytes, ...]
LISTS: frozenset[bytes]
WITHIN: frozenset[bytes]
CONTENTS: frozenset[bytes]

class _Ids(Protocol):
    def opened(
        self, text: bytes, ctx: RequestContext, quoted: bool, bound: bytes | None
    ) -> tuple[bytes, bool, bytes | None] | Reply: ...
    def place(self, ctx: RequestContext, account: bytes, guarded: bool) -> bytes: ...
    def seal(self, value: bytes, place: bytes) -> bytes | None: ...
    def owner_of(self, ctx: RequestContext) -> bytes: ...

class Resources:
    """What becomes of requests for files, batches, stored responses and the like.

    ids: seals and opens ids (headgate.backend.llm.bound_ids). providers: those that clients may choose, by name, each
    with its rules. default_provider: the name of the one that takes requests which name no model. shared_lists: callers
    that are known may read lists of what all callers have made. Raises ValueError for an unknown default.
    """

    def __init__(
        self,
        ids: _Ids,
        providers: Mapping[str, PublicModel] | None = ...,
        default_provider: str | None = ...,
        *,
        shared_lists: bool = ...,
    ) -> None: ...
    @property
    def ids(self) -> _Ids: ...
    @property
    def providers(self) -> dict[bytes, PublicModel]: ...
    @property
    def default_provider(self) -> bytes | None: ...
    @property
    def shared_lists(self) -> bool: ...
