"""What the file may say and is refused as `not supported yet`, as a page: `python -m headgate.config.pending`."""

from __future__ import annotations

from collections import deque
from typing import Final

from headgate.config.shape.root import ROOT
from headgate.config.shape.vocabulary import (
    Anything,
    Case,
    ListOf,
    MapOf,
    Object,
    Ref,
    Scalar,
    Shape,
    Union,
    WordChoice,
)

HEAD: Final = """\
# Not supported yet

The loader knows these fields and values, and refuses them with `not supported yet: <path>`. So nothing is read and then
ignored. For example, this is refused with `not supported yet: config.trustDomain`:

```yml
config: {trustDomain: cluster.local}
gateways: {default: {port: 3000}}
```

A field that is possible in several places (policies, backends) is listed once, at the shortest path. It is refused
everywhere, with everything below it. What only the control plane of a mesh provides is not supported. This page is
generated from the shape of the file (`python -m headgate.config.pending`).

"""


def pending() -> list[str]:
    """Return the paths of what is not built, sorted; a value stands behind ` = `."""
    found: list[str] = []
    seen: set[tuple[int, str]] = set()
    # Breadth first: what may stand in several places is listed at the one with the shortest path.
    waiting: deque[tuple[Shape, str]] = deque([(ROOT, "")])
    while waiting:
        shape, path = waiting.popleft()
        match shape:
            case Ref():
                waiting.append((shape.target(), path))
            case ListOf():
                waiting.append((shape.item, f"{path}[]"))
            case MapOf():
                waiting.append((shape.item, f"{path}.*"))
            case Union():
                waiting.extend((one.shape if isinstance(one, Case) else one, path) for one in shape.cases)
            case WordChoice():
                found.extend(f"{path} = {word}" for word in shape.later)
            case Object():
                for name, entry in shape.fields.items():
                    # Objects are made anew where policies are put together; their entries are the same.
                    if (id(entry), name) in seen:
                        continue
                    seen.add((id(entry), name))
                    inner = f"{path}.{name}" if path else name
                    if entry.later:
                        found.append(inner + _but(entry.unless))
                    else:
                        waiting.append((entry.shape, inner))
            case Scalar() | Anything():
                pass
    return sorted(found)


def _but(harmless: tuple[object, ...]) -> str:
    return f" other than {' or '.join(map(_shown, harmless))}" if harmless else ""


def _shown(value: object) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def page() -> str:
    """Return docs/not-supported-yet.md."""
    return HEAD + "".join(f"- `{line}`\n" for line in pending())


if __name__ == "__main__":
    print(page(), end="")
