"""Configurations to plans: what a reload takes over, and what it lets go of."""

from __future__ import annotations

import asyncio
import gc
import re
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import effort
import example_files
import pytest
import trustme
from compile_rig import PORT, Rig, open_rig, rig
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.config.load import LoadErrors, TextSource, load
from headgate.expr.compile import compile_expression
from headgate.ir.gateway import Gateway
from headgate.ir.route import Route
from headgate.net.tls import ClientContext, SniSelector
from headgate.pipeline.running import RunningConfiguration
from headgate.pipeline.slices import at_once
from headgate.policy.cloud.refresher import CredentialError
from headgate_engine.context.redact import HiddenParameter, redacted
from headgate_engine.context.request import make_context
from headgate_engine.errors import NameResolutionError
from headgate_engine.plan.plans import BindPlan, ListenerPlan, RoutePlan
from headgate_engine.route.table import RouteRule, RouteTable
from headgate_engine.steps.location import CredentialLocation
from headgate_engine.tls.context import TlsContext

__all__ = ["rig"]

JWKS = (
    '{"keys": [{"kty": "EC", "crv": "P-256", "kid": "a", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", '
    '"y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}'
)


def route_text(name: str, path: str, policies: str = "", host: str = "127.0.0.1:1") -> str:
    return (
        f"- {{name: {name}, matches: [{{path: {{pathPrefix: {path}}}}}], policies: {{{policies}}}, "
        f"backends: [{{host: '{host}'}}]}}\n"
    )


def certify(folder: Path, *names: str) -> None:
    """Write NAME.pem and NAME.key for NAME.test, and who has signed them to root.pem."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "root.pem")
    for name in names:
        made = authority.issue_cert(f"{name}.test")
        (folder / f"{name}.pem").write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
        made.private_key_pem.write_to_path(folder / f"{name}.key")


def secure_port(folder: Path, *names: str) -> str:
    """A port with a listener for each name."""
    lines = [
        f"    - {{name: {name}, hostname: {name}.test, protocol: HTTPS, tls: {{cert: {folder}/{name}.pem, key: {folder}/{name}.key}}}}\n"
        for name in names
    ]
    return "gateways:\n  default:\n    port: 3000\n    listeners:\n" + "".join(lines)


def test_an_unchanged_route_keeps_its_plan_and_its_pool(rig: Rig) -> None:
    rig.run("routes:\n" + route_text("a", "/a") + route_text("b", "/b"))
    a, b = rig.plan("/a"), rig.plan("/b")
    assert a is not None
    pool = a.backends[0].pool
    rig.run("routes:\n" + route_text("a", "/a") + route_text("b", "/b", "timeout: {requestTimeout: 1s}"))
    assert rig.plan("/a") is a
    assert rig.plan("/b") is not b
    assert rig.running is not None
    assert pool in rig.running.pools.by_key.values()


def test_a_changed_plan_of_the_same_path_needs_no_new_table(rig: Rig) -> None:
    rig.run("routes:\n" + route_text("a", "/a"))
    table, before = rig.listener.table, rig.plan("/a")
    made = rig.compile("routes:\n" + route_text("a", "/a", "timeout: {requestTimeout: 1s}"))
    assert rig.plan("/a") is before, "until it is swapped in"
    made.activate()
    rig.running = made
    assert rig.listener.table is table
    assert rig.plan("/a") is not before


def test_a_plan_that_is_thrown_away_leaves_the_running_one(rig: Rig) -> None:
    running = rig.run("routes:\n" + route_text("a", "/a"))
    before = rig.plan("/a")
    made = rig.compile("routes:\n" + route_text("a", "/a", "timeout: {requestTimeout: 1s}", host="127.0.0.1:2"))
    made.discard(running)
    at_once(made.release(running))
    assert rig.plan("/a") is before
    assert before is not None
    assert before.backends[0].pool in running.pools.by_key.values()


def test_routes_that_come_and_go_change_the_table(rig: Rig) -> None:
    rig.run("routes:\n" + route_text("a", "/a"))
    kept = rig.plan("/a")
    rig.run("routes:\n" + route_text("b", "/b") + route_text("a", "/a"))
    assert rig.plan("/a") is kept
    assert rig.plan("/b") is not None
    rig.run("routes:\n" + route_text("b", "/b"))
    assert rig.plan("/a") is None


def test_equal_rules_are_taken_in_the_order_of_the_file_also_when_it_changes(rig: Rig) -> None:
    rig.run("routes:\n" + route_text("a", "/x") + route_text("b", "/x"))
    first = rig.plan("/x")
    rig.run("routes:\n" + route_text("b", "/x") + route_text("a", "/x"))
    second = rig.plan("/x")
    assert (first and first.name, second and second.name) == ("a", "b")


def test_settings_of_the_process_compile_every_route_anew(rig: Rig) -> None:
    text = "routes:\n" + route_text("a", "/a")
    rig.run(text)
    before = rig.plan("/a")
    rig.run(text + "frontendPolicies: {http: {maxBufferSize: 1000}}\n")
    assert rig.plan("/a") is not before


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 2)), max_size=6, unique_by=lambda one: one[0]),
        min_size=2, max_size=4,
    )
)  # fmt: skip
def test_any_change_of_routes_comes_to_what_a_fresh_start_has(reloads: list[list[tuple[int, int, int]]]) -> None:
    """Each route has a name, a kind of policy, and a host."""
    kinds = (
        "", "timeout: {requestTimeout: 2s}", "requestMirror: {backend: {host: '127.0.0.1:9'}, percentage: 0.5}",
        "authorization: {rules: ['request.path == \"x\" || size(request.method) > 1']}",
    )  # fmt: skip

    def text(routes: list[tuple[int, int, int]]) -> str:
        lines = [route_text(f"n{name}", f"/n{name % 3}/{kind}", kinds[kind], f"127.0.0.1:{host + 1}") for name, kind, host in routes]
        return "routes:\n" + "".join(lines) if lines else ""

    with open_rig() as rig:
        for number, routes in enumerate(reloads):
            rig.within(lambda routes=routes: rig.run(text(routes)))  # type: ignore[misc]
            if number % 2:
                # What is compiled and thrown away changes nothing.
                rig.within(lambda: rig.compile(text(reloads[0])).discard(rig.running))  # type: ignore[arg-type]
        with open_rig() as fresh:
            fresh.within(lambda: fresh.run(text(reloads[-1])))
            assert rig.running is not None
            assert fresh.running is not None
            assert rig.running.pools.by_key.keys() == fresh.running.pools.by_key.keys()
            for one, other in ((rig.running.claimed, fresh.running.claimed),):
                assert (one.pools, one.places, one.variables) == (other.pools, other.places, other.variables)
                assert one.endpoints.keys() == other.endpoints.keys()
            assert [entry.route.digest for entry in rig.listener.entries] == [
                entry.route.digest for entry in fresh.listener.entries
            ]
            assert rig.listener.routes == {entry.route.key: entry for entry in rig.listener.entries}
            assert rig.listener.bound.keys() == fresh.listener.bound.keys()
            for name in range(3):
                for kind in range(4):
                    plans = [one.plan(f"/n{name}/{kind}") for one in (rig, fresh)]
                    origins = [None if plan is None else plan.origin for plan in plans]
                    assert origins[0] == origins[1]


@pytest.mark.parametrize(
    "policies",
    [
        "retry: {attempts: 2, codes: [503]}",
        "responseHeaderModifier: {set: {x-a: 'NUMBER'}}",
        "authorization: {rules: ['request.path == \"NUMBER\"']}",
        "transformations: {request: {set: {x-a: 'request.path + \"NUMBER\"'}}}",
        f"jwtAuth: {{issuer: 'iNUMBER', jwks: '{JWKS}'}}",
        "requestMirror: {backend: {host: '127.0.0.1:1'}, percentage: 0.5}",
        "directResponse: {status: 200, body: 'NUMBER'}",
        "cors: {allowOrigins: ['https://NUMBER.test']}",
        "apiKey: {keys: [{key: k}], location: {queryParameter: {name: pNUMBER}}}",
        "backendTLS: {root: ROOT, hostname: NUMBER.test}",
    ],
    ids=lambda text: text.partition(":")[0],
)
def test_two_hundred_reloads_leave_nothing_behind(rig: Rig, policies: str, tmp_path: Path) -> None:
    """One route changes, and one of two certificates of the port. What is counted shows in fewer: only one kind has all of them."""
    last = 205 if effort.LONG or policies.startswith("authorization") else 25
    kinds = (
        RunningConfiguration, BindPlan, ListenerPlan, RoutePlan, RouteRule, RouteTable, Route, Gateway, SniSelector, TlsContext,
        ClientContext, HiddenParameter, CredentialLocation,
    )  # fmt: skip
    certify(tmp_path, "a", "b", "c")
    policies = policies.replace("ROOT", f"{tmp_path}/root.pem")

    def reload(number: int) -> None:
        changed = policies.replace("NUMBER", str(number))
        text = "routes:\n" + route_text("kept", "/k") + route_text("a", f"/a{number}", changed)
        rig.within(lambda: rig.run(text, secure_port(tmp_path, "a", "bc"[number % 2])))

    def objects() -> Counter[type]:
        # By type: isinstance() asks a weak proxy for its object, which may be gone.
        return Counter(type(one) for one in gc.get_objects() if type(one) in kinds)

    for number in range(5):
        reload(number)
    gc.collect()
    gc.disable()
    try:
        before = objects()
        for number in range(5, last):
            reload(number)
        # Counting references must do: a collection over a large configuration would hold the loop too long. What other
        # tests of this process have left may go meanwhile.
        assert objects() - before == Counter()
    finally:
        gc.enable()
    assert before[RoutePlan] >= 2


ROOT = Path(__file__).parents[3]
# Objects of a worker; a test reads the files of the supervisor as well.
OF_WORKERS = tuple(
    f"headgate{rest}." for rest in ("_engine", ".backend", ".crypto", ".net", ".pipeline", ".policy", ".telemetry", ".trace")
)


def every_configuration() -> dict[str, Gateway]:
    """What the examples, the golden configurations and the pages of the documentation have in them."""
    issued = trustme.CA().issue_cert("site.test")
    pair = {"SITE_CERT": issued.cert_chain_pems[0].bytes().decode(), "SITE_KEY": issued.private_key_pem.bytes().decode()}
    environ = {**example_files.ENVIRON, **pair, "KEY": "k", "OIDC_COOKIE_SECRET": "5a" * 32, "LOG_PASSWORD": "p"}
    texts: dict[str, str] = {}
    for path in (*ROOT.glob("examples/*.yaml"), *ROOT.glob("tests/golden/config/*.yaml"), *ROOT.glob("docs/*.md")):
        text = path.read_text()
        blocks = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL) if path.suffix == ".md" else [text]
        # Neither resources of a cluster nor what names certificates or key sets, which are not there.
        others = ("certs/", "/etc/headgate/", "cert.pem", "jwks.json", "apiVersion:")
        texts |= {f"{path.name} {number}": block for number, block in enumerate(blocks) if not any(one in block for one in others)}
    route = f"{PORT}routes:\n" + route_text("a", "/a")
    found = {}
    for name, text in texts.items():
        named = {one: one for one in re.findall(r"\$\{(\w+)\}", text)}
        for head in ("", route):
            with suppress(LoadErrors):
                found[name] = load(TextSource(head + text), environ={**named, **environ}).gateway
                break
        else:
            pytest.fail(f"{name} is no configuration")
    return found


def test_all_of_a_configuration_goes_with_it(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the collector off, which does not look at what was there when another configuration came into force."""

    async def refused(*_: object, **__: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    async def without(*_: object) -> None:
        raise CredentialError("there is none")

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", refused)
    async def unknown(*_: object) -> None:
        raise NameResolutionError("unknown")

    # These would ask in threads, which nobody can wait for.
    monkeypatch.setattr("headgate.net.cares.CaresLookup.ask", unknown)
    monkeypatch.setattr("headgate.policy.cloud.gcp.Google.__call__", without)
    empty, every = load(TextSource(PORT)).gateway, every_configuration()
    assert len(every) > 60

    def swap(gateway: Gateway) -> None:
        rig.within(lambda: rig.swap(rig.compiled(gateway)))

    def objects() -> Counter[str]:
        kinds = Counter(map(type, gc.get_objects()))
        found: Counter[str] = Counter()
        for kind, count in kinds.items():
            if type(kind.__module__) is str and f"{kind.__module__}.".startswith(OF_WORKERS):
                found[f"{kind.__module__}.{kind.__qualname__}"] += count
        return found

    gc.collect()
    # What was there before has nothing to do with it, and looking at it takes half of the time. It stays frozen, as what was collected
    # before all tests is: gc.unfreeze() would have this process look at the objects of all test modules from now on.
    gc.freeze()
    for name, gateway in every.items():
        for _ in range(2 if effort.LONG else 1):
            swap(gateway)
            swap(empty)
        rig.rest()
        gc.collect()
        gc.disable()
        try:
            before = objects()
            for _ in range(3 if effort.LONG else 1):
                swap(gateway)
                swap(empty)
            rig.rest(lambda before=before: not objects() - before)
            assert (name, dict(objects() - before)) == (name, {})
        finally:
            gc.enable()


def test_certificates_that_stay_are_kept_and_each_is_a_step(rig: Rig, tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(30)]
    certify(tmp_path, *names)
    rig.run("", secure_port(tmp_path, *names))
    assert rig.running is not None
    [before] = rig.running.names.values()
    contexts = {name: before.find(f"{name}.test") for name in names}
    assert len(set(map(id, contexts.values()))) == 30
    assert before.find("other.test") is None
    certify(tmp_path, "n7")
    rig.run("", secure_port(tmp_path, *names))
    [after] = rig.running.names.values()
    assert [name for name in names if after.find(f"{name}.test") is not contexts[name]] == ["n7"]
    [bind] = rig.running.gateway.binds
    assert sum(1 for _ in SniSelector.steps(bind.listeners)) == 30


def test_what_logs_hide_is_what_the_configuration_in_force_says(rig: Rig) -> None:
    """However many names it has had before: 64 may be set at a time."""
    def hidden(name: str) -> bool:
        ctx = make_context(headers=[(name, "value")])
        return compile_expression(f'request.headers.redacted()["{name}"]').evaluate(ctx) == "<redacted>"

    for number in range(100):
        rig.run(f"config: {{sensitiveHeaders: [x-one-{number}, x-two-{number}]}}\n")
    made = rig.compile("config: {sensitiveHeaders: [x-later]}\n")
    assert [hidden(name) for name in ("x-one-99", "x-two-99", "x-two-98", "x-later")] == [True, True, False, False]
    made.activate()
    rig.running = made
    assert [hidden(name) for name in ("x-one-99", "x-two-99", "x-two-98", "x-later")] == [False, False, False, True]
    policy = "apiKey: {keys: [{key: k}], location: {queryParameter: {name: MARK}}}"
    rig.run("routes:\n" + route_text("a", "/a", policy.replace("MARK", "here")))
    assert redacted("/?here=1&there=1") == "/?here=<redacted>&there=1"
    rig.run("routes:\n" + route_text("a", "/a", policy.replace("MARK", "there")))
    assert redacted("/?here=1&there=1") == "/?here=1&there=<redacted>"


def test_a_configuration_is_let_go_of_in_small_steps(rig: Rig) -> None:
    def text(mark: str) -> str:
        rules = (f"authorization: {{rules: ['request.path != \"/{mark}{number}\"']}}" for number in range(600))
        return "routes:\n" + "".join(route_text(f"r{number}", f"/{number}", one) for number, one in enumerate(rules))

    before = rig.run(text("a"))
    made = rig.compile(text("b"))
    made.activate()
    rig.running = made
    environment, most, held = before.environment, 0, 600
    assert environment is not None
    assert len(environment._programs) == held
    for _ in before.release(made):
        most = max(most, held - len(environment._programs))
        held = len(environment._programs)
    assert held == 0
    assert 0 < most <= 64
    assert before.gateway is made.gateway


def test_the_routes_of_a_configuration_are_let_go_of_in_small_steps(rig: Rig) -> None:
    """So that no two of its parts hold all of them: whichever goes last would free them at once."""

    def text(mark: str) -> str:
        return "routes:\n" + "".join(route_text(f"r{number}", f"/{mark}{number}") for number in range(200))

    def live() -> int:
        return sum(type(one) is Route for one in gc.get_objects())

    gc.freeze()     # it looks at all objects at each step
    before = rig.run(text("a"))
    made = rig.compile(text("b"))
    made.activate()
    rig.running = made
    counts = [live()]
    work = before.release(made)
    del before
    for _ in work:
        counts.append(live())
    del work
    counts.append(live())
    freed = [earlier - later for earlier, later in pairwise(counts)]
    assert sum(freed) == 200
    assert max(freed) <= 16
