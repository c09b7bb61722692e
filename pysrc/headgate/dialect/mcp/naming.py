"""Names of items of several servers towards the client, and their conversion back.

Tools and prompts are named `<target>_<name>`, tasks `<target>+<id>`, and resources `<target>+<uri>`; a URI
`ui://<rest>` becomes `ui://<target>+<rest>`, so that its scheme is kept. Names of targets contain neither `_` nor `+`.
Requests of servers get ids that contain the target.
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
    """No target has the name. The text is the name that the client has sent."""


def split_name(name: str) -> tuple[str, str]:
    """Return the target and its own name of a tool or prompt. Raises UnknownName."""
    target, mark, rest = name.partition("_")
    if not mark or not target or not rest:
        raise UnknownName(name)
    return target, rest


def uri_with_target(target: str, uri: str) -> str:
    """Return a URI or URI template for the client. One without a scheme is not changed."""
    if UI.match(uri):
        return f"{uri[:5]}{target}+{uri[5:]}"
    return f"{target}+{uri}" if SCHEME.match(uri) else uri


def split_uri(uri: str) -> tuple[str, str]:
    """Return the target and its own URI. Raises UnknownName."""
    if UI.match(uri):
        target, mark, rest = uri[5:].partition("+")
        if not mark or not target or any(char in target for char in "/?#"):
            raise UnknownName(uri)
        return target, uri[:5] + rest
    target, mark, rest = uri.partition("+")
    # `<target>+ui://x` is refused: the only valid form of this name is `ui://<target>+x`.
    if not mark or not target or UI.match(rest):
        raise UnknownName(uri)
    return target, rest


def task_with_target(target: str, task: str) -> str:
    """Return the id of a task for the client."""
    return f"{target}+{task}"


def split_task(task: str) -> tuple[str, str]:
    """Return the target and its own id of a task. Raises UnknownName."""
    target, mark, rest = task.partition("+")
    if not mark or not target:
        raise UnknownName(task)
    return target, rest


def task_id_prefix(worker: int) -> str:
    """Return the prefix of task ids in a process that belongs to one worker, if there are several workers."""
    return f"w{worker}~"


def task_worker(task: str) -> int | None:
    """Return the index of the worker whose process has a task, None for an id without prefix.

    `task` is the second item of a result of split_task().
    """
    found = TASK_ID_PREFIX.match(task)
    return None if found is None else int(found[1])


def request_id(target: str, raw_id: bytes) -> bytes:
    """Return the raw JSON id with which a server's request is sent to the client."""
    value = json.loads(raw_id)
    kind = "s" if isinstance(value, str) else "n"
    return json.dumps(f"{REQUEST_ID}{target}_{kind}_{value if kind == 's' else raw_id.decode()}").encode()


def split_request_id(raw_id: bytes | None) -> tuple[str, bytes] | None:
    """Return the target and the server's own raw id, None for an id that request_id() has not made."""
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
