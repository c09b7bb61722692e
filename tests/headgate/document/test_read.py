"""YAML and JSON to nodes with places."""

from __future__ import annotations

import json
import math

import effort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.document.nodes import DocumentNode
from headgate.document.read import MAX_DEPTH, read
from headgate.errors import ConfigErrors, Problem


def plain(node: DocumentNode) -> object:
    value = node.value
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(entry.node) for key, entry in value.items()}
    return value


SCALARS = [
    ("no", "no"),
    ("yes", "yes"),
    ("on", "on"),
    ("y", "y"),
    ("true", True),
    ("False", False),
    ("null", None),
    ("~", None),
    ("", None),
    ("0123", 123),
    ("0o17", 15),
    ("0x1F", 31),
    ("-7", -7),
    ("1_000", "1_000"),
    ("1e3", 1000.0),
    (".5", 0.5),
    ("12:30:45", "12:30:45"),
    ("2024-01-01", "2024-01-01"),
    ("1.2.3", "1.2.3"),
    ("'5'", "5"),
    ('"true"', "true"),
    ("!!str 5", "5"),
    ("!!int 5", 5),
    ("!!float 5", 5.0),
    ("|\n  a\n  b\n", "a\nb\n"),
]


@pytest.mark.parametrize(("text", "value"), SCALARS, ids=[repr(case[0]) for case in SCALARS])
def test_scalars_follow_the_core_schema_of_yaml_1_2(text: str, value: object) -> None:
    found = plain(read(f"k: {text}", "c.yaml"))
    assert found == {"k": value}
    assert isinstance(found, dict)
    assert type(found["k"]) is type(value)


def test_nodes_and_entries_know_line_and_column() -> None:
    root = read("a: 1\nb:\n  - c: x\n", "c.yaml")
    assert isinstance(root.value, dict)
    entry = root.value["b"]
    assert (entry.line, entry.column) == (2, 1)
    assert isinstance(entry.node.value, list)
    inner = entry.node.value[0].value
    assert isinstance(inner, dict)
    assert (inner["c"].line, inner["c"].column, inner["c"].node.column) == (3, 5, 8)


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "null"])
def test_an_empty_document_is_an_empty_map(text: str) -> None:
    assert plain(read(text, "c.yaml")) == {}


FAULTS = [
    ("a: 1\na: 2", 2, "given twice"),
    ("a: {b: 1, c: 2, b: 3}", 1, "given twice"),
    ("a:\n\tb: 1", 2, "cannot start any token"),
    ("a: [1", 1, "expected"),
    ("a: 1\n---\nb: 2", 2, "second document"),
    ("a: !!python/object:os.system x", 1, "tag"),
    ("a: !!int x", 1, "tag"),
    ("a: !mine {b: 1}", 1, "tag"),
    ("? [a]\n: b", 1, "key must be a scalar"),
    ("? {a: 1}\n: b", 1, "key must be a scalar"),
    ("a: &x [*x]", 1, "inside itself"),
    ("a: *nope", 1, "anchor"),
    ("<<: {a: 1}", 1, "merge keys"),
    ("a: b\n c: d", 2, "not allowed"),
    ('a: "\\q"', 1, "escape"),
    ("x\x01", 1, "not allowed"),
]


@pytest.mark.parametrize(("text", "line", "words"), FAULTS, ids=[repr(case[0]) for case in FAULTS])
def test_syntax_faults_tell_file_and_line(text: str, line: int, words: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        read(text, "c.yaml")
    fault = caught.value.errors[0]
    assert fault.problem is Problem.SYNTAX
    assert words in fault.message
    assert abs(fault.line - line) <= 1
    assert str(fault).endswith(f"(c.yaml:{fault.line})")


def test_all_repeated_keys_are_told_together() -> None:
    with pytest.raises(ConfigErrors) as caught:
        read("a: 1\na: 2\nb: {c: 1, c: 2}\n", "c.yaml")
    assert [fault.line for fault in caught.value.errors] == [2, 3]


def test_nesting_beyond_the_limit_is_a_fault_and_no_crash() -> None:
    with pytest.raises(ConfigErrors, match="nested deeper"):
        read("[" * 100_000, "c.yaml")
    read("[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1), "c.yaml")


def test_an_alias_bomb_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    # Followed to its end, it would fill the memory of any machine.
    with pytest.raises(ConfigErrors, match="including those of aliases"):
        read("\n".join(lines), "c.yaml")


def test_aliases_repeat_their_anchor() -> None:
    assert plain(read("a: &x {b: 1}\nc: *x\nd: [*x, *x]", "c")) == {
        "a": {"b": 1},
        "c": {"b": 1},
        "d": [{"b": 1}, {"b": 1}],
    }


def test_a_variable_under_an_alias_is_expanded_once() -> None:
    assert plain(read("a: &x $$A\nb: *x", "c", {"A": "no"})) == {"a": "$A", "b": "$A"}


def test_variables_expand_in_keys_and_values_but_not_in_comments() -> None:
    root = read("# ${NONE}\n${K}: ['$V', \"${V}\"] # $NONE\n", "c", {"K": "key", "V": "v: [1]\n# x"})
    assert plain(root) == {"key": ["v: [1]\n# x", "v: [1]\n# x"]}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{port: ${PORT}, tls: {cert: ${DIR}/a.pem, key: ${KEY:-/k}}}", {"port": "3000", "tls": {"cert": "/d/a.pem", "key": "/k"}}),
        ('{"port": ${PORT}, "list": [${DIR}${PORT}, "${DIR}", \'${PORT}\']}', {"port": "3000", "list": ["/d3000", "/d", "3000"]}),
        ("a: {b: ${BRACES}}\nc: |\n  ${PORT} {x}\n# ${NOT_SET}\n", {"a": {"b": "{x: [1"}, "c": "3000 {x}\n"}),
    ],
)
def test_variables_may_stand_bare_between_braces(text: str, found: object) -> None:
    environ = {"PORT": "3000", "DIR": "/d", "BRACES": "{x: [1"}
    assert plain(read(text, "c", environ)) == found


def test_faults_of_a_text_with_bare_variables_are_where_they_were() -> None:
    with pytest.raises(ConfigErrors) as caught:
        read("a: {b: ${NOT_SET}, c: ${PORT}}\nd: {e: ${GONE}\n}", "c", {"PORT": "1"})
    assert [(fault.path, fault.line) for fault in caught.value.errors] == [("", 1), ("", 2)]
    with pytest.raises(ConfigErrors, match="did not find expected"):
        read("a: {b: ${PORT}, c: [}", "c", {"PORT": "1"})


def test_a_key_made_by_a_variable_can_collide() -> None:
    with pytest.raises(ConfigErrors, match="given twice"):
        read("a: 1\n${K}: 2", "c", {"K": "a"})


def test_all_unset_variables_are_told_with_name_and_line() -> None:
    with pytest.raises(ConfigErrors) as caught:
        read("a: ${ONE}\nb: [$TWO, '${ONE}']\n${THREE}: 1", "c.yaml", {})
    messages = [str(fault) for fault in caught.value.errors]
    assert messages == [
        "environment variable not found: ONE (c.yaml:1)",
        "environment variable not found: TWO (c.yaml:2)",
        "environment variable not found: ONE (c.yaml:2)",
        "environment variable not found: THREE (c.yaml:3)",
    ]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc", "Cn"), exclude_characters="\ufeff\x85")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=1), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@settings(deadline=None, max_examples=effort.examples(200))
@given(st.dictionaries(st.sampled_from("abc"), JSON), st.sampled_from([None, 2, "\t"]), st.booleans())
def test_json_reads_as_json(value: object, indent: int | str | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert plain(read(text, "c.json")) == value


@settings(deadline=None)
@given(st.text(max_size=80))
def test_any_text_gives_nodes_or_config_errors(text: str) -> None:
    caught: ConfigErrors | None = None
    try:
        read(text, "c.yaml", {})
    except ConfigErrors as error:
        caught = error
    assert caught is None or caught.errors


def test_infinity_is_a_number_of_yaml() -> None:
    found = plain(read("a: .inf", "c"))
    assert isinstance(found, dict)
    assert math.isinf(found["a"])
