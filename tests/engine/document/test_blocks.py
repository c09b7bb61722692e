"""What is read line by line is what libyaml makes of it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import effort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.document.events import read_events
from headgate.document.nodes import DocumentNode, MapEntry
from headgate.document.read import read_plain, resolve
from headgate.errors import ConfigErrors
from headgate_engine.document.blocks import UnusualYaml, read_blocks

ROOT = Path(__file__).parents[3]
ENVIRON = {"A": "one", "B": "2"}
FILES = sorted((*ROOT.glob("examples/*.yaml"), *ROOT.glob("tests/golden/config/*.yaml")))


def shown(node: DocumentNode) -> Any:
    """All that a node says, places included."""
    value = node.value
    if isinstance(value, list):
        inner: Any = [shown(item) for item in value]
    elif isinstance(value, dict):
        inner = [(key, entry.line, entry.column, shown(entry.node)) for key, entry in value.items()]
    else:
        inner = (type(value), repr(value))
    return inner, node.line, node.column, node.loose, node.expanded


def agrees(text: str, environ: dict[str, str] | None = ENVIRON) -> bool:
    """Compare both readers; whether the text is plain."""
    quick = read_plain(text, environ)
    if quick is None:
        return False
    try:
        whole = read_events(text, "x", environ)
    except ConfigErrors as error:
        raise AssertionError(f"libyaml refuses it: {error}\n{text}") from error
    assert not whole.anchored
    assert shown(quick) == shown(whole.root), text
    return True


PLAIN = [
    "a: 1\n",
    "a: 1",
    "- a\n- b",
    "a:\nb:\n",
    "a:\n- b\n- c\nd: e\n",
    "a:\n  - b\n  - c\nd: e\n",
    "- - a\n  - b\n- c: d\n  e: f\n-\n- \n-\n  - g\n-\n  h: i\n",
    "a: # said\n  b: c # said\n# said\n\n  d: 'e' # said\n",
    "a: 'it''s'\nb: \"say \\\"x\\\" \\\\ \\n \\t \\/\"\n'c d': 1\n\"e: f\": 2\n",
    "a: [b, 'c', \"d\", [1, 2], {e: f}, -1]\nb: {}\nc: []\nd: {e: {f: [g]}, 'h': i}\n",
    "a: http://b:80/c?d=e#f\nb: a#b\nc: -1\nd: -x\n",
    "a: ${A}\nb: '$B-$$'\nc: [\"${B}\"]\n",
    "a: ~\nb: null\nc: 0x1f\nd: 1.5e3\ne: .inf\nf: yes\ng: true\n",
    "a: \u00e9\u4e2d\U0001f600\n\u00e9: b\n",
    "  a: 1\n  b: 2\n",
    "a:\n    b:\n     - c\n     - d: e\n       f: g\n",
    "a: b c  d\nb: x   # y\n",
    "- {a: b}\n- [c]\n- 'd'\n- e: 'f'\n",
    'x: {"a":{"b":[1,-2,"c",{"d":null}],"e":""},"f g":true,\'h\':i,"j":\n k}\n',
    "\n\n# head\na: 1\n\n",
    "a: [b, # said\n\nc,\n    {d: e,\n# said\nf: 'g'}\n]\nh: {i: [\n1\n], j: k # said\n}\n",
]
UNUSUAL = [
    "", "# a", "a", "'a'", "[a]", "{a: b}", "a: &x 1", "a: *x", "a: !!str 1", "a: |\n  b", "a: >\n  b", "a: b\n  c", "a: 'b\n  c'",
    "a:\tb", "a: b\r\nc: d", "a: 1\na: 2", "<<: 1", "--- \na: 1", "a: 1\n...\n", "%YAML 1.2\n---\na: 1", "a: b: c", "a: - b",
    "? a\n: b", "a: [b, ]", "a: {b, c: d}", "a: {b: , c: d}", "a: {b:c}", "a: {'b':}", "a: {'b':,c: d}", "a: {'b'::c}", "a: {'b':#c\n}", "a: {'b' :c}", "a: [b: c]", "a : b",
    "'a' : b", "a: 'b' c", "a: [b] c", "a: \"\\x41\"", "a: @b", "a: `b", "a: %b", "a:\n  b", "a:\n  b: 1\n c: 2", "- a\n b", "- a\nb: c",
    "a: 1\n- b", "a:\n  - b\n c: d", "$A: 1", "a: ${NONE}", "a: {b: ${A}}", "\ufeffa: 1", "a: b\u2028c", "a: \u0085", "a: [#b]",
    "a: [b #c]", "a: [b\n c]", "a: {b\n : c}", "a: {b:\n c}", "a: [b,\n--- ]", "a: [b,\n...\n]", "a: [b,#c\n d]", "a: [b,\n\n", "a: {b: c", "a: [", "a: '", "a: \"b\\", "a" * 1001 + ": 1", "- " * 101 + "a", "a: [" + "[" * 101 + "]" * 101 + "]",
    "a: [?b]", "a: {? b: c}", "a: [:b]", "a:b", "-a", "a: [-]", "a: [-, b]", "a: -", "a: ?", "a: ,b", "a: ]",
]  # fmt: skip


@pytest.mark.parametrize("text", PLAIN)
@pytest.mark.parametrize("environ", [ENVIRON, None])
def test_plain_texts_are_read(text: str, environ: dict[str, str] | None) -> None:
    assert agrees(text, environ)


@pytest.mark.parametrize("text", UNUSUAL)
def test_what_is_unusual_is_left_to_libyaml(text: str) -> None:
    assert read_plain(text, ENVIRON) is None


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_configurations_are_read_alike(path: Path) -> None:
    agrees(path.read_text())


def test_most_configurations_are_plain() -> None:
    assert sum(agrees(path.read_text()) for path in FILES) >= len(FILES) // 2


SCALARS = st.sampled_from([
    "a", "b c", "-1", "'x y'", "\"q\\\"\"", "1", "true", "~", "a#b", "a:b", "http://h:1/p", "${A}", "'$B'", "[]", "{}", "[a, 'b']",
    "{a: b, 'c d': [1]}", "{\"a\":b,'c':[1,{\"d\":-1}]}", "{a: {b: c}}", "x # said", "'it''s'", "\u00e9", "a, b", "a]b", "\"\"", "''", "[a, {b: 'c, d'}]", "a  b",
])  # fmt: skip
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4),
        st.dictionaries(st.sampled_from(["a", "b-c", "d.e", "'f g'", "\"h\"", "i/j", "\u00e9"]), inner, min_size=1, max_size=4),
    ),
    max_leaves=12,
)


def written(value: Any, draw: random.Random, indent: int = 0) -> str:
    """A document in block style, with comments and blank lines here and there."""
    blank = " " * indent
    noise = draw.choice(["", "", "", "\n", f"{blank}# said\n", "# said\n", "   \n"])
    if isinstance(value, str):
        return f"{value}\n"
    step = draw.choice([1, 2, 4])
    lines = []
    entries = value.items() if isinstance(value, dict) else ((None, one) for one in value)
    for key, one in entries:
        head = "-" if key is None else f"{key}:"
        if isinstance(one, str):
            inner = f" {one}\n" if draw.random() < 0.95 else "\n"
        elif key is None and draw.random() < 0.7:
            inner = " " + written(one, draw, indent + 2).lstrip(" \n")
            if inner.lstrip().startswith("#"):
                inner = "\n" + written(one, draw, indent + 2)
        else:
            flat = isinstance(one, list) and key is not None and draw.random() < 0.5
            inner = "\n" + written(one, draw, indent if flat else indent + step)
        lines.append(f"{noise}{blank}{head}{inner}")
    return "".join(lines)


@settings(max_examples=effort.examples(200), deadline=None)
@given(DOCUMENTS, st.integers(0, 2**32))
def test_documents_are_read_alike(value: Any, seed: int) -> None:
    agrees(written(value, random.Random(seed)))


@settings(max_examples=effort.examples(300), deadline=None)
@given(DOCUMENTS, st.integers(0, 2**32))
def test_spoiled_documents_are_read_alike_or_left_alone(value: Any, seed: int) -> None:
    draw = random.Random(seed)
    text = written(value, draw)
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(text) + 1)
        new = draw.choice(["", " ", "  ", "\n", "- ", "#", " #", "'", '"', "[", "]", "{", "}", ":", ": ", ",", "?", "|", "\\", "-", "&", "é"])
        text = text[:at] + new + text[at + draw.randint(0, 2) :]
    agrees(text)


@settings(max_examples=effort.examples(300), deadline=None)
@given(st.text(st.sampled_from("ab \n-:#'\"[]{},?|>&*!%\\$é\t"), max_size=30))
def test_any_text_is_read_alike_or_left_alone(text: str) -> None:
    agrees(text)


def test_a_document_may_not_have_more_values_than_it_is_given() -> None:
    def read(most: int) -> object:
        return read_blocks("a: [1, 2]\nb: 3\n", DocumentNode, MapEntry, resolve, None, most)

    assert read(7)
    for most in (6, 0):
        with pytest.raises(UnusualYaml):
            read(most)
