"""What is told of spoiled configurations: words of the gateway with a place, never words of the interpreter."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate.config.load import TextSource, load
from headgate.errors import ConfigErrors

ROOT = Path(__file__).parents[3]
# Those of libyaml, where it is: ten times as fast.
LOADER, DUMPER = getattr(yaml, "CSafeLoader", yaml.SafeLoader), getattr(yaml, "CSafeDumper", yaml.SafeDumper)
GOLDEN = sorted((ROOT / "tests/golden/config").glob("*.yaml")) + sorted((ROOT / "examples").glob("*.yaml"))
PAGES = [(ROOT / "docs" / name).read_text() for name in ("policies.md", "llm.md", "mcp.md", "guards.md")]
BLOCKS = [block for page in PAGES for block in re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)]
# Words of the interpreter and of its libraries.
INTERPRETER = re.compile(
    r"Traceback|object has no attribute|NoneType|<class|\b(?:Key|Type|Value|Attribute|Index|Unicode\w*|Recursion|Assertion|Overflow|OS)Error"
    r"|not supported between|unhashable|is not (?:iterable|subscriptable|callable)|has no len\(\)|invalid literal|could not convert"
    r"|codec can't|positional argument|keyword argument|object at 0x|\bPython\b|expected str|must be str|a bytes-like|format code"
    r"|list index|tuple index|string indices|\blambda\b|headgate_engine|headgate\.\w+\.|\bdict\b|\bstr\b object|\bint\b object|yaml\.(?!org)|lark"
)
WRONG: list[Any] = [None, True, 17, -1, 0, "str", "", [], {}, ["a"], [[]], {"a": 1}, 1.5, 10**30, -(10**30), float("inf"), float("nan"),
                    "\x7f", "a\nb", "ü", "${NOPE}", {"": None}, {"a.b": [{}]}, "x" * 5000, [None], {"null": None}]  # fmt: skip
EXPRESSIONS = [
    "", " ", "(", ")", "1 +", "'", "a.b.c", "request", "request.", "request.nope", "request.body.nope", "size()", "size(1, 2)", "nope(1)", "1.nope()",
    "jwt[", "jwt[1", "{'a' 1}", "[1, 2", "if", "true ? 1", "x -> y", "request.headers[0]", "request.path + 1", "!1", "-'a'", "1 / 'a'", "has(1)",
    "has(jwt)", "[1].map(1, 2)", "[1].map(x)", "[1].all(x)", "jwt.with(1, 2)", "default(1)", "coalesce()", "'a'.matches('(')", "matches('a', '[')",
    "'\\q'", "b'\\u1234'", "99999999999999999999", "99999999999999999999u", "0xfffffffffffffffffff", "1e999", "\x00", "\U0001f600", "a\ufeffb",
    "(" * 200, "[" * 200 + "]" * 200, "-" * 3000 + "1", "!" * 3000 + "true", "a" * 20000, "1" + "+1" * 9000, "'x'.format(1)", "cel.bind(1, 2, 3)",
    "optional.of()", "response.code", "llm.model", "proxy.route.name.x.y", "this", "variables(1)", "math.nope(1)", "math.", "base64.encode()",
    "google.protobuf.Duration{}", "a{b: 1}", "duration('x') + 1", "timestamp(1, 2)", "[?1]", "{?1: 2}", "a.?b", "a[?0]", "1 in 2", "'a' in 'b'",
    "request.path.map(x, x)", "1.filter(x, x)", "cidr('x')", "ip()", "json()", "fail()", "url.encode()", "form.encode(1, 2)", "`a`", "a.`b c`", "..", ". a",
    "//", "/*", "# x", "a // b", "\n\n1 +", "true &&\n\nfoo(", "\t", "request.path == \"", "r'", "'''", "b\"\"\"a", "0x", "1u2", "1.", ".5.", "1..2",
]  # fmt: skip
FUNCTIONS = [
    "f", "f(", "f()", "f() {", "f() { }", "f() { 1 } g", "f(a,) { a }", "f(,) { 1 }", "f(a b) { a }", "f(1) { 1 }", "size(a) { a }", "f() { f() }",
    "f() { g() }\ng() { f() }", "f() { nope() }", "f() { request.nope }", "f() { ( }", "f() { '}' ", "f() { \"", "}", "{", "f() { 1 } f() { 2 }", "if() { 1 }",
    "f(this) { 1 }", "f(...) { 1 }", "f(...a, b) { a }", "f() { has(1) }", "f() { a{b: 1} }", "\x00", "f(a) { b }",
    "f() {" + "(" * 150 + "}", "f() { [1].map(1, 2) }",
]  # fmt: skip
YAML = [
    "{", "[", "}", "a: b: c", "a:\n\tb: 1", "- a\nb: 1", "a: &x [*x]", "a: *x", "a: !!python/object:os.system x", "a: !t 1", "? [a]\n: b", "? {a: b}\n: c",
    "1: 2", "null: 1", "true: 1", "1.5: 1", "? \n: a", "<<: 1", "<<: {a: 1}", "a: 1\na: 2", "--- a\n--- b", "%YAML 9.9\n---\na", "a: |\n b\n c: d\n  e", "'a", '"a\\q"',
    "a: \x01", "\ufeffa: 1", "a: 2020-01-01", "a: 0o17", "a: 0x1g", "a: 1_000", "a: .nan", "a: -.inf", "a: 12:30:45", "a: ~", "a: 'x' y", "a: [1, 2", "a: {b: 1",
    "a: >\n", "- - -", "- - a\n - b", "''", "0", "true", "x", "[]", "[1]", "a: \"\\ud800\"", "a: " + "[" * 500, "a: " + "x" * 100000, "a:\r\n b: 1\r\n", "@a", "`a`", "a: @b", "a: %b",
    "gateways", "gateways:", "gateways: 1", "gateways: []", "gateways: {a}", "gateways: {a: }", "gateways: {a: {port}}", "gateways: {'': {port: 1}}", "gateways: {a/b: {port: 1}}",
]  # fmt: skip


def told(text: str) -> tuple[str, ...]:
    """Load a text; return what is told, after making sure that each fault has a place and is in the gateway's words."""
    try:
        load(TextSource(text, "c.yaml"), environ={"KEY": "canary"})
    except ConfigErrors as error:
        faults = error.errors
    else:
        return ()
    assert faults
    for fault in faults:
        assert fault.line > 0, fault
        assert fault.file == "c.yaml"
        assert not INTERPRETER.search(fault.message), fault
        assert "canary" not in fault.message
        assert fault.message.strip() or fault.problem.value == "unsupported", fault
    return tuple(map(str, faults))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def spoiled(document: Any, draw: random.Random) -> Any:
    """A copy with up to three changes: a value, a key, one entry more or less."""
    copy = deepcopy(document)
    for _ in range(draw.randint(1, 3)):
        found = list(places(copy))
        if not found:
            break
        holder, key = draw.choice(found)
        kind = draw.randint(0, 5)
        if kind == 0 and isinstance(holder, dict):
            holder[str(key)[:-1] + draw.choice("sxé. ")] = holder.pop(key)
        elif kind == 1:
            del holder[key]
        elif kind == 2 and isinstance(holder, list):
            holder.append(deepcopy(holder[key]))
        elif kind == 3 and isinstance(holder[key], str):
            holder[key] = draw.choice(EXPRESSIONS)
        else:
            # A copy: another change of this document may put something into it, itself among that.
            holder[key] = deepcopy(draw.choice(WRONG))
    return copy


@cache
def documents() -> list[Any]:
    texts = [path.read_text() for path in GOLDEN] + BLOCKS
    found = []
    for text in texts:
        loaded = yaml.load(text, LOADER)
        if isinstance(loaded, dict) and loaded:
            found.append(loaded)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_spoiled_documents(seed: int) -> None:
    draw = random.Random(seed)
    refused = 0
    for document in documents():
        for _ in range(4):
            text = yaml.dump(spoiled(document, draw), Dumper=DUMPER, allow_unicode=True, default_flow_style=draw.random() < 0.3)
            refused += bool(told(text))
    assert refused > 100


@pytest.mark.parametrize("seed", range(4))
def test_spoiled_texts(seed: int) -> None:
    draw = random.Random(seed)
    refused = 0
    for text in [path.read_text() for path in GOLDEN] + BLOCKS:
        for _ in range(2):
            changed = text
            for _ in range(draw.randint(1, 2)):
                at = draw.randrange(len(changed) + 1)
                changed = changed[:at] + draw.choice(("", *"\t\n :-[]{}&*!|>'\"%@`#,?\x00é0")) + changed[at + draw.choice((0, 1, 5)) :]
            refused += bool(told(changed))
    assert refused > 50


PLACES = [
    "routes: [{name: r, policies: {authorization: {rules: [%s]}}}]", "routes: [{name: r, policies: {authorization: {rules: [{deny: %s}]}}}]",
    "routes: [{name: r, policies: {delay: {duration: %s}}}]", "routes: [{name: r, policies: {directResponse: {status: 200, bodyExpression: %s}}}]",
    "routes: [{name: r, policies: {transformations: {request: {set: {a: %s}}}}}]", "routes: [{name: r, policies: {transformations: {response: {body: %s}}}}]",
    "routes: [{name: r, policies: {apiKey: {keys: [{key: k}], location: {expression: %s}}}}]", "frontendPolicies: {accessLog: {filter: %s, add: {a: 'true'}}}",
    "routes: [{name: r, policies: {retry: {attempts: 1, codes: [503], condition: %s}}}]", "config: {metrics: {fields: {add: {a: %s}}}}",
    "gateways: {default: {port: 1, authorization: {rules: [%s]}}}",
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_odd_expressions(place: str) -> None:
    for text in EXPRESSIONS:
        quoted = yaml.safe_dump(text, default_style='"', width=10**6, allow_unicode=False).strip()
        for line in told("gateways: {default: {port: 3000}}\n" + place % quoted if "gateways" not in place else place % quoted):
            assert re.search(r"\(c\.yaml:\d+\)$", line)


@pytest.mark.parametrize("text", FUNCTIONS)
def test_a_bad_function_is_told_once_and_first(text: str) -> None:
    quoted = yaml.safe_dump(text, default_style='"', width=10**6).strip()
    found = told(
        "gateways: {default: {port: 1}}\n"
        "routes: [{name: r, policies: {authorization: {rules: ['f(1) == 2', 'g() || f()', '1.f() == 1']}, delay: {duration: 'nope('}}}]\n"
        f"config: {{customFunctions: {quoted}}}\n"
    )
    assert found[0].startswith("config.customFunctions: line "), found
    assert [line for line in found if "customFunctions" in line or "unknown function" in line] == list(found[:1])
    assert any("delay.duration" in line for line in found[1:]), "other faults are told as well"


@pytest.mark.parametrize("text", YAML, ids=[text[:24] for text in YAML])
def test_odd_yaml(text: str) -> None:
    told(text)
    told(f"gateways: {{default: {{port: 1}}}}\n{text}\n")
    told("routes:\n- name: r\n  " + text.replace("\n", "\n  ") + "\n")


ROUTED = [
    ("policies: {delay: {duration: 'nope'}}", "routes[1].policies.delay.duration"),
    ("policies: {authorization: {rules: ['a', 'true']}}", "routes[1].policies.authorization.rules[0]"),
    ("policies: {transformations: {request: {set: {x-a: 'request.nope'}}}}", "routes[1].policies.transformations.request.set.x-a"),
    ("policies: {timeout: {requestTimeout: 1y}}", "routes[1].policies.timeout.requestTimeout"),
    ("backends: [{host: 'x'}]", "routes[1].backends[0].host"),
    ("matches: [{path: {regex: '('}}]", "routes[1].matches[0].path.regex"),
    ("gateways: nope", "routes[1].gateways"),
    ("policies: {crsf: {}}", "routes[1].policies"),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "path"), ROUTED)
def test_a_fault_has_its_route_and_line(entry: str, path: str) -> None:
    [line] = told(f"gateways:\n  default: {{port: 3000}}\nroutes:\n- name: first\n- name: second\n  {entry}\n")
    assert line.startswith(f"{path}: ")
    assert line.endswith("(c.yaml:6)")


WORDS = [
    ("routes: [{policies: {csrv: {}}}]", "unknown field 'csrv', did you mean 'csrf'?"),
    ("routes: [{policies: {apiKey: {mode: strikt, keys: [{key: k}]}}}]", "did you mean 'strict'?"),
    ("gateways: {default: {prot: 1}}", "unknown field 'prot', did you mean 'port'?"),
    ("routes: [{backends: [{hosts: 'a:1'}]}]", "did you mean 'host'?"),
    ("routes: [{policies: {jwtAuthentication: {}}}]", "did you mean 'jwtAuth'?"),
    ("routes: [{policies: {basicAuthentication: {}}}]", "did you mean 'basicAuth'?"),
    ("routes: [{policies: {apiKeyAuthentication: {}}}]", "did you mean 'apiKey'?"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "hint"), WORDS)
def test_suggestions_of_fields_and_words(text: str, hint: str) -> None:
    assert any(hint in line for line in told(text))
