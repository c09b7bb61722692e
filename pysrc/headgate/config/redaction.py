"""The configuration's text as it may be shown, and back: what `<redacted>` stands for is put in again.

A mark gets the value of the file back only where it is certain which one that is. Maps are followed by their keys. An
item of a list is found again when it is unchanged, when it has the `name` of exactly one item of the file, or when it
is the only one of a list that was changed; otherwise a key could end up at another provider, so the text is refused.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from headgate.config.file_view import file_view
from headgate.document.credentials import is_marked_url
from headgate.document.nodes import child, plain
from headgate.document.read import read
from headgate.document.secret import REDACTED
from headgate.document.spans import Path, Span, Spans, edited
from headgate.errors import ConfigError, ConfigErrors, Problem

UNKNOWN: Final = f"it is not clear here which secret {REDACTED} stands for: write the value, or a variable (${{NAME}})"
_CREDENTIAL: Final = re.compile(
    r"(?i)authorization|bearer|basic |cookie|passw|secret|credential|key|token|[A-Za-z0-9+/_-]{32}"
)
# Kept as it is: a path is no credential, whatever it looks like.
_SCHEMA: Final = "# yaml-language-server:"
HIDDEN_COMMENT: Final = f"# {REDACTED}"


def shown_text(text: str, name: str) -> str:
    """Return the text without its secrets, comments that may hold one included. ConfigErrors: it cannot be read."""
    spans = Spans(text)
    hidden = _hidden(file_view(text, name), plain(read(text, name)))
    changes = {
        spans.scalar(path): REDACTED if view == REDACTED else json.dumps(view, ensure_ascii=False)
        for path, view in hidden.items()
    }
    changes |= dict.fromkeys(_hidden_comments(text, spans), HIDDEN_COMMENT)
    return edited(text, changes)


def restored_text(text: str, held: str, name: str) -> str:
    """Return the text with every mark replaced by what it stands for in `held`, the file's text.

    Lines that were not touched become those of the file again, quotes and all. ConfigErrors: the text cannot be read,
    or a mark has no certain meaning.
    """
    document = plain(read(text, name))
    marks = _Marks()
    if _marked(document):
        _align(document, file_view(held, name), plain(read(held, name)), ((), ()), marks)
    spans = Spans(text)
    if marks.lost:
        raise ConfigErrors(_fault(text, spans, path, name) for path in marks.lost)
    rest = _comments_back(text, spans, held)
    changes = {spans.scalar(path): json.dumps(value, ensure_ascii=False) for path, value in marks.found.items()}
    written = _as_written(text, spans, marks, shown_text(held, name) if marks.found else "", held)
    restored = edited(text, changes | written | rest)
    if written and plain(read(restored, name)) != _replaced(document, marks.found, ()):
        # What stood there means something else here.
        return edited(text, changes | rest)
    return restored


class _Marks:
    """What the marks of a document stand for: the value of each, and its path in the file. `lost`: without a certain
    one.
    """

    def __init__(self) -> None:
        self.found: dict[Path, Any] = {}
        self.places: dict[Path, Path] = {}
        self.lost: list[Path] = []


def _as_written(text: str, spans: Spans, marks: _Marks, shown: str, held: str) -> dict[Span, str]:
    """Return what the file has, letter by letter, for marks on lines that begin as they were shown."""
    found: dict[Span, str] = {}
    if not marks.found:
        return found
    shown_spans, held_spans = Spans(shown), Spans(held)
    for path, place in marks.places.items():
        span, before = spans.scalar(path), shown_spans.scalar(place)
        if _line_start(text, span[0]) == _line_start(shown, before[0]):
            start, end = held_spans.scalar(place)
            found[span] = held[start:end]
    return found


def _line_start(text: str, at: int) -> str:
    return text[text.rfind("\n", 0, at) + 1 : at]


def restored_value(value: Any, view: Any, held: Any) -> tuple[list[str], Any]:
    """Return where marks have no certain meaning, and the value with all others replaced by what they stand for in
    `held`, whose view is `view`.
    """
    marks = _Marks()
    if _marked(value):
        _align(value, view, held, ((), ()), marks)
    return [f"{spelled(path)}: {UNKNOWN}" for path in marks.lost], _replaced(value, marks.found, ())


def _replaced(value: Any, found: dict[Path, Any], path: Path) -> Any:
    if path in found:
        return found[path]
    if isinstance(value, dict):
        return {key: _replaced(one, found, (*path, key)) for key, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, found, (*path, at)) for at, one in enumerate(value)]
    return value


def _fault(text: str, spans: Spans, path: Path, name: str) -> ConfigError:
    place, _ = spans.scalar(path)
    line = text.count("\n", 0, place) + 1
    return ConfigError(Problem.VALUE, spelled(path), UNKNOWN, name, line, place - text.rfind("\n", 0, place))


def spelled(path: Path) -> str:
    """Return a path as messages have it: `llm.models[0].params`."""
    found = ""
    for step in path:
        found = f"{found}[{step}]" if isinstance(step, int) else child(found, step)
    return found


def _hidden(view: Any, held: Any, path: Path = ()) -> dict[Path, str]:
    """Return the replacements of hidden scalars."""
    if isinstance(view, dict):
        return {at: one for key in view for at, one in _hidden(view[key], held[key], (*path, key)).items()}
    if isinstance(view, list):
        return {at: one for i, item in enumerate(view) for at, one in _hidden(item, held[i], (*path, i)).items()}
    return {path: view} if isinstance(view, str) and view != held else {}


def _marked(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_marked(one) for one in value.values())
    return any(_marked(one) for one in value) if isinstance(value, list) else _is_mark(value)


def _is_mark(value: Any) -> bool:
    return isinstance(value, str) and (value == REDACTED or is_marked_url(value))


def _align(new: Any, view: Any, held: Any, where: tuple[Path, Path], marks: _Marks) -> None:
    """Find what the marks of a part stand for. `where`: its path in the new document, and in the file."""
    path, place = where
    if _is_mark(new):
        if view == new:
            marks.found[path], marks.places[path] = held, place
        else:
            marks.lost.append(path)
    elif isinstance(new, dict):
        known = view if isinstance(view, dict) else {}
        for key, value in new.items():
            own = held[key] if key in known else None
            _align(value, known.get(key), own, ((*path, key), (*place, key)), marks)
    elif isinstance(new, list):
        for at, item in enumerate(new):
            if _marked(item):
                there = _counterpart(new, at, view if isinstance(view, list) else [], held)
                seen, known_value = (None, None) if there is None else (view[there], held[there])
                _align(item, seen, known_value, ((*path, at), (*place, at if there is None else there)), marks)


def _counterpart(new: list[Any], at: int, view: list[Any], held: Any) -> int | None:
    """Return which item of the file the item `at` of the new list is; None when that is not certain."""
    item = new[at]
    same = [index for index, one in enumerate(view) if one == item]
    if same and all(held[index] == held[same[0]] for index in same):
        return same[0]
    others = len(new) == len(view) and all(new[index] == view[index] for index in range(len(new)) if index != at)
    if others:
        return at
    if isinstance(item, dict) and isinstance(item.get("name"), str):
        named = [index for index, one in enumerate(view) if isinstance(one, dict) and one.get("name") == item["name"]]
        twins = [one for one in new if isinstance(one, dict) and one.get("name") == item["name"]]
        if len(named) == 1 == len(twins):
            return named[0]
    return None


def _hidden_comments(text: str, spans: Spans) -> list[Span]:
    return [
        (start, end)
        for start, end in spans.comments()
        if not text.startswith(_SCHEMA, start) and _CREDENTIAL.search(text, start, end)
    ]


def _comments_back(text: str, spans: Spans, held: str) -> dict[Span, str]:
    """Return the hidden comments in their order; with some of them gone, nobody knows which, and the rest goes too."""
    marks = [(start, end) for start, end in spans.comments() if text[start:end].rstrip() == HIDDEN_COMMENT]
    if not marks:
        return {}
    before = [held[start:end] for start, end in _hidden_comments(held, Spans(held))]
    return dict(zip(marks, before if len(before) == len(marks) else [""] * len(marks), strict=True))
