"""The last state of a data plane in a file, with which it serves when it starts and the controller is away.

The file has secrets: only its owner may read it (mode 0600), and one that anybody else could have written is not used.
A line of JSON says what follows and its digest; then each part has a line.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from headgate.config.delivered import DeliveredPart

logger = logging.getLogger("headgate.delivery")
NAME: Final = "delivered-state"
FORMAT: Final = 1
MAX_BYTES: Final = 256 * 1024 * 1024


class KeptState(NamedTuple):
    """Versions and parts by name; `good`: of parts that were refused, what was in force in their place."""

    versions: dict[str, str]
    parts: dict[str, DeliveredPart]
    good: dict[str, DeliveredPart]


class StateFile:
    """The file in `folder` with the state of the data plane of `role`."""

    def __init__(self, folder: str, role: str) -> None:
        self._path = Path(folder, NAME)
        self._role = role

    def save(
        self, versions: Mapping[str, str], parts: Mapping[str, DeliveredPart], good: Mapping[str, DeliveredPart]
    ) -> None:
        """Write a state in the place of the one before, at once or not at all. Raises OSError."""
        lines = [orjson.dumps([key, versions[key], *part]) for key, part in parts.items()]
        lines += [orjson.dumps([key, "", *part]) for key, part in good.items()]
        body = b"\n".join(lines)
        if len(body) > MAX_BYTES:
            raise OSError(f"the state has more than {MAX_BYTES} bytes")
        head = {
            "format": FORMAT, "role": self._role, "parts": len(parts), "good": len(good),
            "sha256": hashlib.sha256(body).hexdigest(),
        }  # fmt: skip
        fresh = self._path.with_suffix(".new")
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(orjson.dumps(head) + b"\n" + body)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)

    def load(self) -> KeptState | None:
        """Return the state; None if there is none, or none that can be used, which is logged."""
        try:
            return self._loaded()
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            logger.warning("the kept state is not used", extra={"path": str(self._path), "reason": str(error)})
            return None

    def _loaded(self) -> KeptState:
        descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
                raise ValueError("it is no private file of this user")
            if status.st_size > MAX_BYTES + 4096:
                raise ValueError("it is too large")
            head: dict[str, Any] = orjson.loads(file.readline(4096))
            body = file.read()
        if head["format"] != FORMAT or head["role"] != self._role:
            raise ValueError("it is of another version or another Gateway")
        if hashlib.sha256(body).hexdigest() != head["sha256"]:
            raise ValueError("its digest is wrong")
        rows = [orjson.loads(line) for line in body.split(b"\n")] if body else []
        if len(rows) != head["parts"] + head["good"]:
            raise ValueError("it is not whole")
        wanted, good = rows[: head["parts"]], rows[head["parts"] :]
        versions = {row[0]: row[1] for row in wanted}
        return KeptState(versions, {row[0]: _part(row) for row in wanted}, {row[0]: _part(row) for row in good})


def _part(row: list[Any]) -> DeliveredPart:
    _, _, place, parent, order, value = row
    return DeliveredPart(place, parent, tuple(map(_tuple, order)), value)


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
