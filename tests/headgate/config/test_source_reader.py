"""Reading a source again: equal to reading all of it, and only what changed is read."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.config import pieces, source_reader
from headgate.config.dump import Runtime, dump
from headgate.config.load import FileSource, Loaded, LoadErrors, TextSource, UnreadableSource, load
from headgate.config.source_reader import SourceReader
from headgate.errors import ConfigErrors
from headgate.ir.route import Route

ENVIRON = {"NAME": "from-environment", "HOST": "e.test:80"}
HEAD = "config: {workerThreads: 1}\ngateways:\n  default:\n    port: 3000\n  other: {port: 3001, listeners: [{name: l}]}\n"
POLICIES = """policies:
- name: {name: slow, namespace: default}
  target: {route: {name: a1, namespace: default}}
  policy: {timeout: {requestTimeout: 3s}}
- name: {name: idle, namespace: default}
  target: {backend: {backend: {name: shared, namespace: ''}}}
  policy: {requestHeaderModifier: {set: {x-b: '1'}}}
backends:
- name: shared
  host: shared.test:80
- name: key
  host: key.test:80
  policies: {backendAuth: {key: {file: key.txt}}}
"""
SERVICES = """services:
- {name: s, namespace: n, hostname: s.test, ports: {'80': 8080}}
- {name: t, namespace: n, hostname: t.test, ports: {'80': 8080}, endpoints: {x: {workloadUid: w1}}}
workloads:
- {uid: w1, name: w, namespace: n, workloadIps: [10.0.0.1], services: {n/s.test: {'80': 8080}}}
- {uid: w2, name: w, namespace: n, workloadIps: [10.0.0.2], services: {n/s.test: {'80': 8080}, n/t.test: {'80': 8081}}}
"""
OF_SERVICES = [
    ("10.0.0.1", "10.0.0.NUMBER"), ("10.0.0.2", "10.0.0.NUMBER"), ("8081", "80NUMBER"), ("n/s.test: {'80': 8080}, ", ""),
    ("hostname: t.test", "hostname: u.test"), ("services:\n", "services:\n- {name: u, namespace: n, hostname: u.test, ports: {'80': 1}}\n"),
    ("ports: {'80': 8080}}", "ports: {'80': 8080}, appProtocols: {'80': http2}}"), (SERVICES, ""), ("", SERVICES),
    ("workloads:\n", "workloads:\n- {uid: w3, name: w, namespace: n, workloadIps: [10.0.1.1], services: {n/u.test: {'80': 1}}}\n"),
    ("- {uid: w1", "- {uid: w9"), ("namespace: n, hostname: s.test", "namespace: m, hostname: s.test"),
]  # fmt: skip
# Further entries of the two lists: what a change of the rest may add, remove or move.
MORE_POLICIES = [
    "- name: {name: NAME, namespace: default}\n  target: {route: {name: a2, namespace: default}}\n"
    "  policy: {timeout: {requestTimeout: NUMBERs}}\n",
    "- name: {name: NAME, namespace: default}\n  target: {route: {name: a3, namespace: default}}\n"
    "  policy: {requestMirror: {backend: {backend: shared}}}\n",
    "- name: {name: NAME, namespace: default}\n  target: {backend: {backend: {name: key, namespace: ''}}}\n"
    "  policy: {requestHeaderModifier: {set: {x-c: 'NUMBER'}}}\n",
    "- name: {name: NAME, namespace: default}\n  target: {gateway: {gatewayName: default, gatewayNamespace: default}}\n"
    "  policy: {timeout: {requestTimeout: NUMBERs}}\n",
    "- name: {name: NAME, namespace: default}\n  target: {route: {name: a1, namespace: default}}\n"
    "  policy: {authorization: {rules: ['request.path == \"/NUMBER\"']}}\n",
    "- name: {name: NAME, namespace: default}\n  target: {route: {name: a2, namespace: default}}\n"
    "  policy: {requestMirror: {backend: {service: {name: n/s.test, port: 80}}}}\n",
]
MORE_BACKENDS = [
    "- name: missing-NUMBER\n  host: found.test:80\n",
    "- name: bNUMBER\n  host: b.test:NUMBER\n",
    "- name: through\n  host: far.test:80\n  policies: {backendTunnel: {proxy: {backend: shared}}}\n",
    "- name: through\n  host: far.test:80\n  policies: {backendTunnel: {proxy: {service: {name: n/s.test, port: 80}}}}\n",
]
BODIES = [
    "  matches: [{path: {pathPrefix: /NUMBER}}]\n  backends: [{host: 'NUMBER.test:80'}]\n",
    "  policies:\n    directResponse: {status: 200, body: 'NUMBER'}\n",
    "  policies:\n    authorization:\n      rules:\n      - 'request.path.startsWith(\"/NUMBER\")'\n",
    "  policies:\n    transformations:\n      request:\n        set:\n          x-a: '\"NUMBER-\" + request.method'\n",
    "  # a comment\n\n  backends:\n  - backend: shared\n    weight: 2\n",
    "  backends:\n  - backend: key\n",
    "  backends:\n  - host: ${HOST}\n",
    "  policies:\n    directResponse:\n      status: 200\n      body: |+\n        - name: text\n        lines\n\n",
    "  policies:\n    directResponse:\n      status: 200\n      body: >\n        # text\n         more\n",
    "  policies: {directResponse: {status: 200, body: \"two\n    lines\"}}\n",
    "  policies: {localRateLimit: [{requests: 5, unit: seconds}]}\n",
    "  gateways: [other]\n",
    "  gateways: [default, other/l]\n  hostnames: ['h.test', \"*.NUMBER.test\"]\n",
    "  backends: [{backend: missing-NUMBER}]\n",
    "  backends: [{service: {name: n/s.test, port: 80}}]\n",
    "  backends: [{service: {name: n/t.test, port: 80}}, {service: {name: n/u.test, port: 80}, weight: 2}]\n",
    "  backends: [{mcp: {targets: [{name: m, mcp: {host: 'http://t.test:80/mcp'}}]}}]\n",
    "  policies: {requestMirror: {backend: {service: {name: n/t.test, port: 80}}}}\n  backends: [{host: 'a.test:80'}]\n",
    "  backends: [{backend: through}, {backend: shared}]\n",
    "  policies: {requestMirror: {backend: {backend: shared}}}\n  backends: [{host: 'a.test:80'}]\n",
    "  backends:\n  - backend: shared\n    policies:\n      backendAuth: {key: {file: other.txt}}\n",
]
WRONG = [
    "  backends: [{host: nowhere}]\n",
    "  unknown: 1\n",
    "  gateways: [none]\n",
    "  policies: {authorization: {rules: ['request.pat == 1']}}\n",
    "  backends: [{host: ${MISSING}}]\n",
    "  policies: {directResponse: {status: 200, body: 'open\n",
    "  matches: [\n",
    "  name: twice\n",
    "  backends: &anchor [{host: 'a:1'}]\n",
    "  backends: *anchor\n",
    "  policies: {directResponse: {status: 99, body: x}}\n",
    "---\n",
    "...\n",
    "bad indentation\n",
    "\tbackends: []\n",
    "  backends: []\r\n",
    "  backends: []\u2028- name: behind\n",
]


@pytest.fixture(autouse=True)
def short_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists of a test are short, and no share of them is too much."""
    monkeypatch.setattr(pieces, "LEAST_ITEMS", 3)
    monkeypatch.setattr(source_reader, "MOST_NEW", 1.0)


class Editor:
    """A file that is edited at random."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.numbers = 0
        self.indent = self.draw.choice(["", "  "])
        self.long_form = self.draw.random() < 0.3
        self.policies = self.draw.choice([POLICIES, ""])
        self.routes = [self.route() for _ in range(self.draw.randint(4, 9))]
        self.tail = self.draw.choice(["", POLICIES, "mcp: {targets: [{name: t, mcp: {host: 'http://m.test/mcp'}}]}\n"])
        if self.tail == self.policies:
            self.tail = ""
        self.head = HEAD
        self.services = self.draw.choice([SERVICES, SERVICES, ""])

    def route(self, wrong: float = 0.0) -> str:
        self.numbers += 1
        body = self.draw.choice(WRONG if self.draw.random() < wrong else BODIES).replace("NUMBER", str(self.numbers))
        name = f"a{self.numbers}" if self.draw.random() < 0.8 else self.draw.choice(["a1", "a2", "'q: #'"])
        if self.draw.random() < 0.25:
            return "- namespace: default\n" + body
        return f"- name: {name}\n{body}"

    def text(self) -> str:
        if self.long_form:
            head = self.head.replace("default:", "spare:")
            lines = "".join("    " + line for one in self.routes for line in one.splitlines(keepends=True))
            list_of = f"binds:\n- port: 3005\n  listeners:\n  - name: one\n    routes:\n{lines}"
        else:
            head = self.head
            lines = "".join(self.indent + line for one in self.routes for line in one.splitlines(keepends=True))
            list_of = f"routes:\n{lines}"
        return f"{head}{self.policies}{list_of}{self.tail}{self.services}"

    def edit_services(self) -> None:
        """Change services and what serves them."""
        if self.draw.random() < 0.3:
            self.services = SERVICES
        old, new = self.draw.choice(OF_SERVICES)
        if old or not self.services:
            self.services = self.services.replace(old, new.replace("NUMBER", str(self.draw.randint(11, 99))), 1)

    def edit_rest(self) -> None:
        """Change what is no route: backends and policies above all."""
        name = "policies" if self.policies else "tail"
        found: str = getattr(self, name)
        number = str(self.draw.randint(81, 99))
        match self.draw.randrange(8):
            case 0:
                found = found.replace("3s", f"{number}s")
            case 1:
                found = found.replace("shared.test:80", f"shared.test:{number}")
            case 2 | 3:
                more = self.draw.choice(MORE_POLICIES).replace("NAME", f"p{self.numbers}").replace("NUMBER", number)
                found = found.replace("backends:\n", f"{more}backends:\n")
            case 4:
                found = found.replace("policies:\n", "policies:\n" + MORE_POLICIES[0].replace("NUMBER", number))
            case 5:
                more = self.draw.choice(MORE_BACKENDS).replace("NUMBER", self.draw.choice([number, "14", "13"]))
                found = found.replace("backends:\n", f"backends:\n{more}") if number < "90" else found + more
            case 6:
                found = POLICIES
            case 7:
                self.head = HEAD.replace("3001", f"30{number}") if self.head == HEAD else HEAD
        if found.startswith("policies:"):
            setattr(self, name, found)

    def edit(self, wrong: float) -> None:
        """Change, insert, delete, move, comment or indent routes."""
        routes, at = self.routes, self.draw.randrange(len(self.routes))
        match self.draw.randrange(9):
            case 0 | 1:
                routes[at] = self.route(wrong)
            case 2:
                routes.insert(self.draw.randint(0, len(routes)), self.route(wrong))
            case 3:
                if len(routes) > 1:
                    del routes[at]
            case 4:
                routes.insert(self.draw.randrange(len(routes)), routes.pop(at))
            case 5:
                routes[at] += self.draw.choice(["  # said\n", "# said\n", "\n", "      \n", "  namespace: n\n"])
            case 6:
                routes[at] = "".join(f"# {line}" for line in routes[at].splitlines(keepends=True))
            case 7:
                self.indent = "" if self.indent else "  "
            case 8:
                for number in range(0, len(routes), 2):
                    routes[number] += "  # two at once\n"

    def spoil(self, text: str) -> str:
        """Change some characters of a text."""
        for _ in range(self.draw.randint(1, 2)):
            at = self.draw.randrange(len(text))
            new = self.draw.choice(["", " ", "\n", "- ", "#", "'", '"', "[", "}", ":", "|", "&a ", "*a", "\t", "\n- ", "é"])
            text = text[:at] + new + text[at + self.draw.randint(0, 2) :]
        return text


def outcome(read: Iterator[Loaded] | object) -> object:
    """What reading gives: all of a configuration, or its faults."""
    try:
        loaded = read()  # type: ignore[operator]
    except (LoadErrors, UnreadableSource) as error:
        return [str(one) for one in error.errors], getattr(error, "watched_files", ())
    gateway = loaded.gateway
    shown = dump(gateway, Runtime(generation=1, workers=1))
    return (
        gateway, gateway.digest, gateway.expressions, shown, set(loaded.watched_files), loaded.watched_files[0],
        loaded.warnings, loaded.blank,
    )  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**40))
def test_reading_again_is_reading_all(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("reader")
    path = folder / "config.yaml"
    (folder / "key.txt").write_text("secret")
    (folder / "other.txt").write_text("secret")
    editor = Editor(seed)
    source = FileSource(str(path))
    reader = SourceReader(source)
    for _ in range(8):
        text = editor.text()[: None if editor.draw.random() < 0.95 else -1]
        path.write_bytes((editor.spoil(text) if editor.draw.random() < 0.2 else text).encode())
        found = outcome(lambda: reader.load(ENVIRON))
        assert found == outcome(lambda: load(source, environ=ENVIRON)), path.read_text()
        if editor.draw.random() < 0.1:
            (folder / "key.txt").write_text(str(editor.draw.random()))
        saved = [*editor.routes]
        for _ in range(editor.draw.choice([1, 1, 1, 2, 3])):
            editor.edit(wrong=0.15)
        if editor.draw.random() < 0.4:
            editor.edit_rest()
        if editor.draw.random() < 0.4:
            editor.edit_services()
        if editor.draw.random() < 0.3:
            editor.routes = saved


def written(tmp_path: Path, *routes: str, tail: str = "") -> SourceReader:
    """A reader of a file with these routes."""
    (tmp_path / "key.txt").write_text("secret")
    rewrite(tmp_path, *routes, tail=tail)
    return SourceReader(FileSource(str(tmp_path / "c.yaml")))


def rewrite(tmp_path: Path, *routes: str, tail: str = "") -> None:
    (tmp_path / "c.yaml").write_text(f"{HEAD}{POLICIES}routes:\n{''.join(routes)}{tail}")


def named(number: int, body: str = BODIES[0]) -> str:
    return f"- name: a{number}\n{body.replace('NUMBER', str(number))}"


ROUTES = [named(number) for number in range(8)]


@pytest.mark.parametrize(
    "routes",
    [
        [*ROUTES[:3], named(33), *ROUTES[4:]],
        [*ROUTES[:3], named(33), *ROUTES[3:]],
        [named(33), *ROUTES],
        [*ROUTES, named(33)],
        [*ROUTES[:3], *ROUTES[4:]],
        ROUTES[:-1],
        ROUTES[1:],
        [ROUTES[5], *ROUTES[:5], *ROUTES[6:]],
        [*ROUTES[:-1], named(33)],
        [named(33), *ROUTES[1:-1], named(34, BODIES[2])],
        [*ROUTES[:3], named(33, BODIES[13]), *ROUTES[4:]],
        [*ROUTES[:3], named(33, BODIES[14]), *ROUTES[4:]],
    ],
    ids=[
        "changed", "inserted", "first", "last", "deleted", "last deleted", "first deleted", "moved", "last changed",
        "two", "with a warning", "with another file",
    ],
)  # fmt: skip
@pytest.mark.parametrize("tail", ["", "mcp: {targets: [{name: t, mcp: {host: 'http://m.test/mcp'}}]}\n"])
def test_changed_routes_are_read_without_the_others(tmp_path: Path, routes: list[str], tail: str) -> None:
    (tmp_path / "other.txt").write_text("secret")
    reader = written(tmp_path, *ROUTES, tail=tail)
    before = reader.load(ENVIRON)
    rewrite(tmp_path, *routes, tail=tail)
    found = outcome(lambda: reader.load(ENVIRON))
    assert reader.whole == 1
    assert found == outcome(lambda: load(reader.source, environ=ENVIRON))
    rewrite(tmp_path, *ROUTES, tail=tail)
    again = reader.load(ENVIRON)
    assert reader.whole == 1
    assert again == before


def test_routes_that_did_not_change_are_the_same_objects(tmp_path: Path) -> None:
    reader = written(tmp_path, *ROUTES)
    before = reader.load(ENVIRON).gateway.binds[0].listeners[0].routes
    rewrite(tmp_path, *ROUTES[:3], named(33), *ROUTES[4:])
    after = reader.load(ENVIRON).gateway.binds[0].listeners[0].routes
    assert [one is other for one, other in zip(before, after, strict=True)] == [number != 3 for number in range(8)]


def test_a_source_that_says_the_same_gives_the_same_object(tmp_path: Path) -> None:
    reader = written(tmp_path, *ROUTES, named(9, BODIES[5]))
    before = reader.load(ENVIRON)
    assert reader.load(ENVIRON) is before
    (tmp_path / "key.txt").write_text("another")
    after = reader.load(ENVIRON)
    assert after is not before, "a file that it names"
    assert reader.load(ENVIRON) is after
    assert reader.load({**ENVIRON, "HOST": "x"}) is not after, "the environment"


def test_a_short_text_that_says_the_same_gives_the_same_object(tmp_path: Path) -> None:
    reader = written(tmp_path, ROUTES[0])
    before = reader.load(ENVIRON)
    assert reader.load(ENVIRON) is before
    rewrite(tmp_path, ROUTES[0], tail="llm: {models: []}\n")
    assert reader.load(ENVIRON) is not before
    assert reader.whole == 2


def test_a_given_text_is_read_each_time() -> None:
    reader = SourceReader(TextSource(HEAD))
    assert reader.load(ENVIRON) is not reader.load(ENVIRON)


def test_faults_are_told_all_at_once_and_a_repair_is_read_by_itself(tmp_path: Path) -> None:
    reader = written(tmp_path, *ROUTES)
    reader.load(ENVIRON)
    rewrite(tmp_path, *ROUTES[:2], named(2, WRONG[0]), *ROUTES[3:6], named(6, WRONG[1]), ROUTES[7])
    with pytest.raises(ConfigErrors) as caught:
        reader.load(ENVIRON)
    with pytest.raises(ConfigErrors) as whole:
        load(reader.source, environ=ENVIRON)
    assert caught.value.errors == whole.value.errors
    assert len({error.line for error in caught.value.errors}) == 2
    rewrite(tmp_path, *ROUTES[:2], named(22), *ROUTES[3:])
    count = reader.whole
    found = outcome(lambda: reader.load(ENVIRON))
    assert reader.whole == count
    assert found == outcome(lambda: load(reader.source, environ=ENVIRON))


@pytest.mark.parametrize(
    ("change", "new"),
    [
        (lambda text: text.replace("requestTimeout: 3s", "requestTimeout: 4s"), {1}),
        (lambda text: text.replace("name: a1, namespace", "name: a3, namespace"), {1, 3}),
        (lambda text: text.replace("shared.test", "shared2.test"), {4, 5}),
        (lambda text: text.replace("x-b: '1'", "x-b: '2'"), {4, 5}),
        (lambda text: text.replace("- name: key\n", "- name: through\n  host: 'x.test:1'\n- name: key\n"), {5}),
        (lambda text: text.replace("\nbackends:", "\n" + MORE_POLICIES[0].replace("NUMBER", "5") + "backends:"), {2}),
        (lambda text: text.replace("\nbackends:", "\nbackends:\n" + MORE_BACKENDS[1].replace("NUMBER", "5").rstrip()), {5}),
        (lambda text: text[:-1], set()),
    ],
    ids=[
        "policy of a route", "target of a policy", "backend", "policy of a backend", "backend that was missing",
        "policy more", "backend in front, where a route has a warning", "no line end",
    ],
)  # fmt: skip
@pytest.mark.parametrize("behind", [False, True], ids=["in front", "behind"])
def test_what_depends_on_a_change_is_read_with_it(
    tmp_path: Path, change: Callable[[str], str], new: set[int], behind: bool
) -> None:
    """A named backend, a targeted policy, the last line: the other routes stay the same objects."""
    bodies = {4: BODIES[4], 5: "  backends: [{backend: through}, {backend: shared}]\n"}
    routes = "".join(named(number, bodies.get(number, BODIES[0])) for number in range(8))
    parts = [f"routes:\n{routes}", POLICIES]
    text = HEAD + "".join(parts if behind else reversed(parts))
    (tmp_path / "key.txt").write_text("secret")
    path = tmp_path / "c.yaml"
    path.write_text(text)
    reader = SourceReader(FileSource(str(path)))
    before = reader.load(ENVIRON)
    path.write_text(change(text))
    found = outcome(lambda: reader.load(ENVIRON))
    assert reader.whole == 1
    assert found == outcome(lambda: load(reader.source, environ=ENVIRON))
    listed = zip(routes_of(before), routes_of(reader.load(ENVIRON)), strict=True)
    assert {number for number, (one, other) in enumerate(listed) if one is not other} == new
    path.write_text(text)
    assert outcome(lambda: reader.load(ENVIRON)) == outcome(lambda: load(reader.source, environ=ENVIRON))
    assert reader.whole == 1


@pytest.mark.parametrize(
    ("change", "new"),
    [
        (("10.0.0.1", "10.0.0.3"), {1, 2}),
        (("10.0.0.2", "10.0.0.3"), {1, 2, 3}),
        (("8081", "8082"), {2, 3}),
        (("services:\n", "services:\n- {name: u, namespace: n, hostname: u.test, ports: {'80': 1}}\n"), {2}),
        (("hostname: t.test", "hostname: x.test"), {2, 3}),
    ],
)
def test_what_depends_on_a_service_is_read_with_it(tmp_path: Path, change: tuple[str, str], new: set[int]) -> None:
    bodies = {
        1: "  backends: [{service: {name: n/s.test, port: 80}}]\n",
        2: "  backends: [{service: {name: n/s.test, port: 80}}, {service: {name: n/t.test, port: 80}}, {service: {name: n/u.test, port: 80}}]\n",
        3: "  backends: [{mcp: {targets: [{name: m, mcp: {host: 'http://t.test:80/mcp'}}]}}]\n",
    }
    plain = SERVICES.replace(", endpoints: {x: {workloadUid: w1}}", "")
    text = HEAD + "routes:\n" + "".join(named(number, bodies.get(number, BODIES[0])) for number in range(8)) + plain
    path = tmp_path / "c.yaml"
    path.write_text(text)
    reader = SourceReader(FileSource(str(path)))
    before = reader.load(ENVIRON)
    path.write_text(text.replace(*change))
    found = outcome(lambda: reader.load(ENVIRON))
    assert reader.whole == 1
    assert found == outcome(lambda: load(reader.source, environ=ENVIRON))
    after = reader.load(ENVIRON)
    listed = zip(routes_of(before), routes_of(after), strict=True)
    assert {number for number, (one, other) in enumerate(listed) if one is not other} == new


def routes_of(loaded: Loaded) -> tuple[Route, ...]:
    return loaded.gateway.binds[0].listeners[0].routes


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("- name: a3", "- name: a4"),
        lambda text: text.replace("port: 3000", "port: 3002"),
        lambda text: text.replace("workerThreads: 1", "workerThreads: 2"),
        lambda text: text.replace("policies:\n", "policies:\n" + MORE_POLICIES[3].replace("NUMBER", "5"), 1),
        lambda text: text.replace("a3\n", "a3\n  backends: &anchor [{host: 'a:1'}]\n"),
        lambda text: text + "llm: {models: []}\n",
    ],
    ids=["two of a name", "port", "process", "policy of a gateway", "anchor", "another section"],
)
def test_what_concerns_other_routes_is_read_as_a_whole(tmp_path: Path, change: object) -> None:
    reader = written(tmp_path, *ROUTES)
    reader.load(ENVIRON)
    path = tmp_path / "c.yaml"
    path.write_text(change(path.read_text()))  # type: ignore[operator]
    found = outcome(lambda: reader.load(ENVIRON))
    assert reader.whole == 2
    assert found == outcome(lambda: load(reader.source, environ=ENVIRON))


def test_protection_whose_route_leaves_is_refused_and_otherwise_only_changes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    policy = "policies:\n- {name: {name: p, namespace: n}, target: {route: {name: a0, namespace: default}}, policy: {csrf: {}}}\n"

    def write(*names: str) -> None:
        routes = "".join(f"- name: {name}\n  policies: {{directResponse: {{status: 200, body: x}}}}\n" for name in names)
        path.write_text(f"{HEAD}routes:\n{routes}{policy}")

    reader = SourceReader(FileSource(str(path)))
    write("a0", "a1", "a2", "a3", "a4")
    reader.load(ENVIRON)
    write("a0", "a1", "a2", "a3", "b4")
    found = reader.load(ENVIRON).gateway.binds[0].listeners[0].routes
    assert ([route.name for route in found if route.policies.csrf], reader.whole) == (["a0"], 1)
    write("b0", "a1", "a2", "a3", "b4")
    with pytest.raises(LoadErrors, match="the target matches no route"):
        reader.load(ENVIRON)
