"""What things of several servers are called towards the client, and back.

Tools and prompts: `<target>_<name>`; resources: `<target>+<uri>`, and `ui://<target>+<rest>` so that such a URI stays
one; tasks: `<target>+<id>`. Names of targets hold neither `_` nor `+`. Requests of servers get ids that lead back to
them.
"""

from __future__ import annotations

import json
import re
from typing import Final

SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
UI: Final = re.compile(r"ui://", re.IGNORECASE)
REQUEST_ID: Final = "gw_"
TASK_ID_PREFIX: Final = re.compile(r"w([0-9]{1,4})~", re.ASCII)


class UnknownName(ValueError):
    """A name that no target has; the text is the one that the client sent."""


def with_target(target: str, name: str) -> str:
    """Return the client's name of a tool or prompt."""
    return f"{target}_{name}"


def split_name(name: str) -> tuple[str, str]:
    """Return target and name; raises UnknownName."""
    target, mark, rest = name.partition("_")
    if not mark or not target or not rest:
        raise UnknownName(name)
    return target, rest


def uri_with_target(target: str, uri: str) -> str:
    """Return the client's form of a URI or URI template; one without a scheme stays as it is."""
    if UI.match(uri):
        return f"{uri[:5]}{target}+{uri[5:]}"
    return f"{target}+{uri}" if SCHEME.match(uri) else uri


def split_uri(uri: str) -> tuple[str, str]:
    """Return target and URI; raises UnknownName."""
    if UI.match(uri):
        target, mark, rest = uri[5:].partition("+")
        if not mark or not target or any(char in target for char in "/?#"):
            raise UnknownName(uri)
        return target, uri[:5] + rest
    target, mark, rest = uri.partition("+")
    # `<target>+ui://x` would be a second spelling of `ui://<target>+x`.
    if not mark or not target or UI.match(rest):
        raise UnknownName(uri)
    return target, rest


def task_with_target(target: str, task: str) -> str:
    """Return the client's form of a task's id."""
    return f"{target}+{task}"


def split_task(task: str) -> tuple[str, str]:
    """Return target and id of a task; raises UnknownName."""
    target, mark, rest = task.partition("+")
    if not mark or not target:
        raise UnknownName(task)
    return target, rest


def task_id_prefix(worker: int) -> str:
    """Return what stands before the ids of tasks in a process of one worker, where there are several."""
    return f"w{worker}~"


def task_worker(task: str) -> int | None:
    """Return the worker whose process has a task, None for an id without a mark. `task`: as the target has it."""
    found = TASK_ID_PREFIX.match(task)
    return None if found is None else int(found[1])


def request_id(target: str, raw_id: bytes) -> bytes:
    """Return the id under which the client gets a server's request."""
    value = json.loads(raw_id)
    kind = "s" if isinstance(value, str) else "n"
    return json.dumps(f"{REQUEST_ID}{target}_{kind}_{value if kind == 's' else raw_id.decode()}").encode()


def split_request_id(raw_id: bytes | None) -> tuple[str, bytes] | None:
    """Return target and the server's own id; None for an id that is none of ours."""
    try:
        text = json.loads(raw_id or b"null")
    except ValueError:
        return None
    if not isinstance(text, str) or not text.startswith(REQUEST_ID):
        return None
    target, _, rest = text[len(REQUEST_ID) :].partition("_")
    kind, _, value = rest.partition("_")
    if kind == "s":
        return target, json.dumps(value).encode()
    if kind == "n" and re.fullmatch(r"-?[0-9]{1,19}(?:\.[0-9]{1,9})?", value):
        return target, value.encode()
    return None
