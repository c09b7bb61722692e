"""What is stored, as values, and what a change makes of it. Nothing here opens a database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from headgate.config.resources.kinds import KINDS, StoredKind, resource_id
from headgate.document.lazy_dataclass import dataclass, replace

# Bounds of what one database holds for a configuration.
MAX_RESOURCES: Final = 10_000
MAX_BYTES: Final = 32 << 20
MAX_DEPTH: Final = 100


class NotStored(Exception):
    """A change was not stored."""


class StorageFailure(NotStored):
    """The database cannot be used. The argument is the reason, without any credential."""


class VersionMoved(NotStored):
    """Somebody else has changed what is stored since it was read."""


class ResourceConflict(Exception):
    """A change is not possible as things are. The argument is the reason."""


class ResourceMissing(Exception):
    """There is no such resource."""


class CandidateRefused(Exception):
    """The configuration with the change cannot be applied. The argument gives the reasons, one per line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResource:
    """One resource. `text` is its value as JSON; `revision` is the version of the store that wrote it, `place` its
    number in the order of creation. Times are microseconds since 1970.
    """

    kind: str
    id: str
    text: str
    revision: int
    place: int
    created_us: int
    updated_us: int

    @property
    def key(self) -> tuple[str, str]:
        """Kind and id."""
        return self.kind, self.id

    @property
    def label(self) -> str:
        """The resource as messages name it."""
        return f"{self.kind}/{self.id}"

    def value(self) -> Any:
        """Return the value."""
        return json.loads(self.text)


class StoredSnapshot(NamedTuple):
    """What is stored at one moment, in the order of creation. Every change makes the version greater by one."""

    version: int = 0
    resources: tuple[StoredResource, ...] = ()


class ResourcePut(NamedTuple):
    """A resource to write. `revision`: the one that it is based on, None for any. `fresh`: it must not exist yet."""

    id: str | None
    value: Any
    revision: int | None = None
    fresh: bool = False


class ResourceChange(NamedTuple):
    """What a client asks for: resources to write, or the id of one to delete, with the revision it is based on."""

    kind: str
    puts: tuple[ResourcePut, ...] = ()
    delete: str | None = None
    revision: int | None = None


class Written(NamedTuple):
    """What a change comes to: the snapshot as it will be, what is written of it, and the keys that are deleted."""

    after: StoredSnapshot
    puts: tuple[StoredResource, ...]
    deleted: tuple[tuple[str, str], ...]


def apply(before: StoredSnapshot, change: ResourceChange, owned: Mapping[str, frozenset[str]], now_us: int) -> Written:
    """Return what a change makes of what is stored. `owned`: by kind the ids that the file defines.

    Raises InvalidResource, ResourceConflict and ResourceMissing.
    """
    kind = KINDS[change.kind]
    known = {one.key: one for one in before.resources}
    version = before.version + 1
    deleted: list[tuple[str, str]] = []
    puts: dict[tuple[str, str], StoredResource] = {}
    if change.delete is not None:
        found = known.get((kind.name, change.delete))
        if found is None:
            if change.delete in owned[kind.name]:
                raise ResourceConflict(f"{kind.name}/{change.delete} is owned by the file")
            raise ResourceMissing
        _based_on(found, change.revision)
        deleted.append(found.key)
    place = max((one.place for one in before.resources), default=0)
    for put in change.puts:
        made = _put(kind, put, known, owned, version, now_us)
        if made.key in puts:
            raise ResourceConflict(f"{made.label} is defined twice")
        if not made.place:
            place += 1
            made = replace(made, place=place)
        puts[made.key] = made
    kept = {key: one for key, one in known.items() if key not in deleted} | puts
    after = tuple(sorted(kept.values(), key=lambda one: one.place))
    if len(after) > MAX_RESOURCES:
        raise ResourceConflict(f"more than {MAX_RESOURCES} resources")
    if sum(len(one.text) for one in after) > MAX_BYTES:
        raise ResourceConflict(f"the resources would take more than {MAX_BYTES} bytes")
    return Written(StoredSnapshot(version, after), tuple(puts.values()), tuple(deleted))


def _put(
    kind: StoredKind, put: ResourcePut, known: Mapping[tuple[str, str], StoredResource],
    owned: Mapping[str, frozenset[str]], version: int, now_us: int,
) -> StoredResource:  # fmt: skip
    """Return one resource as it will be; its place is 0 if it is new."""
    identifier = resource_id(kind, put.value, put.id)
    claimed = set(put.value) if kind.form == "fields" else {identifier}
    if not claimed.isdisjoint(owned[kind.name]):
        raise ResourceConflict(f"{kind.name}/{identifier} is owned by the file")
    found = known.get((kind.name, identifier))
    if found is not None and put.fresh:
        raise ResourceConflict(f"{kind.name}/{identifier} exists")
    if found is None and put.revision is not None:
        raise ResourceConflict(f"{kind.name}/{identifier} no longer exists")
    if found is not None:
        _based_on(found, put.revision)
    return StoredResource(
        kind=kind.name, id=identifier, text=json.dumps(put.value, separators=(",", ":")), revision=version,
        place=0 if found is None else found.place, created_us=now_us if found is None else found.created_us,
        updated_us=now_us,
    )  # fmt: skip


def _based_on(found: StoredResource, revision: int | None) -> None:
    if revision is not None and revision != found.revision:
        raise ResourceConflict(f"{found.label} was changed in the meantime: read it again")


def timestamp(micros: int) -> str:
    """Return a time as RFC 3339 has it."""
    return datetime.fromtimestamp(micros / 1e6, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
