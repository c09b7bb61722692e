"""Backends with several endpoints: services, balance, health, affinity, and what an operator sees of it."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests import forked_rig
from tests.end_to_end.asking import Answer, ask, indented
from tests.end_to_end.tracing import wait_for

pytestmark = pytest.mark.warm


class Member:
    """One workload. `status`, `headers` and `delay` are what it answers with from now on, while it is `open`."""

    def __init__(self, name: str) -> None:
        self.name, self.status, self.delay, self.calls = name, 200, 0.0, 0
        self.open = threading.Event()       # nothing is answered while it is clear
        self.open.set()
        self.headers: dict[str, str] = {}
        self.hosts: set[str] = set()
        member = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                member.calls += 1
                member.hosts.add(self.headers["host"])
                time.sleep(member.delay)
                member.open.wait(60)
                body = member.name.encode()
                self.send_response(member.status)
                for name, value in {"content-length": str(len(body)), **member.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def trio() -> Iterator[list[Member]]:
    found = [Member(name) for name in ("a", "b", "c")]
    yield found
    for member in found:
        member.close()


def config(members: list[Member], policies: str = "", own: str = "", more: str = "") -> str:
    lines = [
        "gateways: {default: {port: {port}}}",
        "services:",
        "- {name: shop, namespace: prod, hostname: shop.prod.test, vips: [10.0.0.1], ports: {80: 8080, 81: 1}}",
        "- {name: empty, namespace: prod, hostname: empty.prod.test, ports: {80: 8080}}",
        "workloads:",
    ]
    for one in members:
        lines.append(
            f"- {{uid: w-{one.name}, name: {one.name}, namespace: prod, workloadIps: [127.0.0.1],"
            f' services: {{"prod/shop.prod.test": {{80: {one.port}}}}}}}'
        )
    lines.append(more)
    lines += [
        "- {uid: w-sick, name: sick, namespace: prod, workloadIps: [127.0.0.1], status: Unhealthy,",
        '   services: {"prod/shop.prod.test": {80: 1}}}',
        "routes:",
        "- name: shop",
        "  policies:",
        indented(policies or "timeout: {requestTimeout: 20s}"),
        "  backends:",
        "  - service: {name: prod/shop.prod.test, port: 80}",
        "    policies:",
        "      http: {requestTimeout: 10s}",
        *(f"  {line}" for line in indented(own).splitlines()),
        '- matches: [{path: {pathPrefix: /empty}}]\n  backends: [{service: {name: prod/empty.prod.test, port: 80}}]',
        '- matches: [{path: {pathPrefix: /none}}]\n  backends: [{service: {name: prod/none.test, port: 80}}]',
    ]
    return "\n".join(line for line in lines if line.strip())


def shares(running: Any, count: int, **options: Any) -> Counter[str]:
    return Counter(ask(running, **options).body.decode() for _ in range(count))


def shares_until(running: Any, name: str, least: int) -> Counter[str]:
    """Who answered until one has answered so often: chance gives the slowest of three a ninth."""
    found: Counter[str] = Counter()
    while found[name] < least:
        assert found.total() < 2000, found
        found[ask(running).body.decode()] += 1
    return found


def state(running: Any, name: str) -> dict[str, Any]:
    """Side and numbers of a workload in the dump."""
    dump = json.loads(running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")[1])
    service = next(one for one in dump["services"] if one["name"] == "shop")
    for side in ("active", "rejected"):
        found = service["endpoints"][0][side].get(f"w-{name}")
        if found is not None:
            return {"side": side, **found["info"], "capacity": found["capacity"], **found["endpoint"]}
    raise AssertionError(f"{name} is not in the dump")


def test_a_service_spreads_over_its_workloads(gateway: Callable[..., Any], trio: list[Member]) -> None:
    running = gateway(config(trio), workers=2)
    found = shares(running, 150, headers={"host": "www.test"})
    assert set(found) == {"a", "b", "c"}
    # Shares follow measured latency, and a busy machine makes one look slow: that they are even is shown in tests/engine/link/test_endpoints.py.
    assert min(found.values()) >= 3, found
    assert trio[0].hosts == {"www.test"}, "a service keeps the client's authority"
    told = state(running, "a")
    assert told["side"] == "active"
    assert (told["totalRequests"], told["pendingRequests"], told["health"]) == (found["a"], 0, 1.0)
    assert 0 < told["requestLatency"] < 1
    assert told["port"] == {"80": trio[0].port}
    empty = ask(running, path="/empty/x")
    assert (empty.status, empty.body) == (503, b"no healthy backends")
    missing = ask(running, path="/none/x")
    assert (missing.status, missing.body) == (500, b"service not found")
    running.wait_log("reason=NoHealthyBackend")
    dump = json.loads(running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")[1])
    assert [one["uid"] for one in dump["workloads"]] == ["w-a", "w-b", "w-c", "w-sick"]
    assert state(running, "sick")["status"] == "unhealthy"


def test_automatic_authority_is_for_those_who_ask(gateway: Callable[..., Any], trio: list[Member]) -> None:
    running = gateway(config(trio, "urlRewrite: {authority: auto}"))
    shares(running, 20)
    assert {host for member in trio for host in member.hosts} == {"shop.prod.test"}


HEALTH = """
health:
  eviction: {consecutiveFailures: 3, duration: DURATION, restoreHealth: 0.5}
"""


def test_an_endpoint_that_fails_is_left_alone(gateway: Callable[..., Any], trio: list[Member]) -> None:
    running = gateway(config(trio, own=HEALTH.replace("DURATION", "600s")), workers=2)
    trio[0].status = 500
    # Failures in a row count over both workers: never more than three calls fail.
    assert shares_until(running, "a", 3).total() < 1000
    assert "a" not in shares(running, 40)
    told = state(running, "a")
    assert (told["side"], told["timesEjected"], trio[0].calls) == ("rejected", 1, 3)


def test_an_endpoint_that_was_left_alone_comes_back(gateway: Callable[..., Any], trio: list[Member]) -> None:
    running = gateway(config(trio, own=HEALTH.replace("DURATION", "1s")), workers=2)
    trio[0].status = 500
    shares_until(running, "a", 3)
    trio[0].status = 200
    assert state(running, "a")["timesEjected"] == 1
    wait_for(lambda: state(running, "a")["side"] == "active")
    shares_until(running, "a", 6)
    told = state(running, "a")
    assert (told["side"], told["evictedUntil"]) == ("active", None)
    assert told["health"] > 0.5


def test_when_all_are_ejected_all_are_used(gateway: Callable[..., Any], trio: list[Member]) -> None:
    running = gateway(config(trio, own="health: {eviction: {duration: 60s}}"))
    for member in trio:
        member.status = 503
    for _ in range(30):
        ask(running)
    assert {state(running, name)["side"] for name in "abc"} == {"rejected"}
    assert state(running, "a")["evictedUntil"].endswith("s")
    for member in trio:
        member.status = 200
    assert {ask(running).status for _ in range(30)} == {200}


def test_an_expression_says_what_is_sick(gateway: Callable[..., Any], trio: list[Member]) -> None:
    sick = """
health:
  unhealthyExpression: 'response.headers["x-load"] == "high"'
  eviction: {duration: 60s}
"""
    running = gateway(config(trio, own=sick))
    trio[0].headers = {"x-load": "high"}
    trio[1].status = 500
    # A status alone says nothing here, nor does an expression that fails.
    found = shares_until(running, "a", 1) + shares_until(running, "b", 10)
    assert found["a"] == 1


def test_a_server_that_asks_for_a_pause_gets_it(gateway: Callable[..., Any], trio: list[Member]) -> None:
    running = gateway(config(trio, own="health: {}"))
    trio[0].status, trio[0].headers = 429, {"retry-after": "30"}
    assert [ask(running).status for _ in range(60)].count(429) == 1
    assert re.fullmatch(r"\d+m?s", state(running, "a")["evictedUntil"])


def test_a_retry_goes_to_another_endpoint(gateway: Callable[..., Any], trio: list[Member]) -> None:
    dead = '- {uid: w-dead, name: dead, namespace: prod, workloadIps: [127.0.0.1], services: {"prod/shop.prod.test": {80: 1}}}'
    running = gateway(config(trio, "retry: {attempts: 1, codes: [503]}", more=dead))
    trio[1].status = 503
    for member in (trio[0], trio[2]):
        member.status = 200
    results = Counter(ask(running).status for _ in range(60))
    # Two of four are bad: the second try may only meet the other bad one.
    assert results[200] >= 35, results
    told = state(running, "dead")
    assert told["consecutiveFailures"] == told["totalRequests"] > 0
    assert told["pendingRequests"] == 0


def test_a_slow_endpoint_gets_less(gateway: Callable[..., Any], trio: list[Member]) -> None:
    running = gateway(config(trio))
    trio[2].delay = 0.3
    with ThreadPoolExecutor(8) as pool:
        found = Counter(answer.body.decode() for answer in pool.map(lambda _: ask(running), range(240)))
    assert found["c"] < 60, found
    assert found["c"] < min(found["a"], found["b"]), found


def test_a_user_sticks_to_an_endpoint(gateway: Callable[..., Any], trio: list[Member]) -> None:
    own = """
sessionAffinity: {source: 'request.headers["x-user"]'}
health: {eviction: {duration: 30s}}
"""
    running = gateway(config(trio, own=own), workers=2)
    users = [f"user{number}" for number in range(12)]

    def where() -> dict[str, str]:
        found = {user: {ask(running, headers={"x-user": user}).body.decode() for _ in range(4)} for user in users}
        assert all(len(one) == 1 for one in found.values()), found
        return {user: one.pop() for user, one in found.items()}

    before = where()
    assert len(set(before.values())) == 3
    gone = before[users[0]]
    member = next(one for one in trio if one.name == gone)
    member.status = 500
    ask(running, headers={"x-user": users[0]})
    after = where()
    assert {user for user in users if after[user] != before[user]} == {user for user in users if before[user] == gone}
    assert len(shares(running, 60)) == 2, "nobody without a name sticks"


def test_what_is_known_survives_a_reload(gateway: Callable[..., Any], trio: list[Member]) -> None:
    text = config(trio, own="health: {eviction: {duration: 60s}}")
    running = gateway(text)
    trio[0].status = 500
    while state(running, "a")["side"] == "active":
        ask(running)
    total = state(running, "a")["totalRequests"]
    running.reload(text.replace("requestTimeout: 20s", "requestTimeout: 19s"))
    told = state(running, "a")
    assert (told["side"], told["totalRequests"]) == ("rejected", total)
    assert "a" not in shares(running, 40)


def test_a_grpc_failure_is_one(gateway: Callable[..., Any], trio: list[Member]) -> None:
    running = gateway(config(trio, own="health: {eviction: {duration: 60s}}"))
    trio[0].headers = {"content-type": "application/grpc", "grpc-status": "13"}
    trio[1].headers = {"content-type": "application/grpc", "grpc-status": "0"}
    found = shares_until(running, "a", 1) + shares_until(running, "b", 6)
    assert found["a"] == 1


def test_a_single_host_is_watched_too(gateway: Callable[..., Any], trio: list[Member]) -> None:
    running = gateway(f"""
gateways: {{default: {{port: {{port}}}}}}
backends:
- name: one
  host: "127.0.0.1:{trio[0].port}"
  policies: {{health: {{eviction: {{duration: 60s}}}}}}
routes:
- backends: [{{backend: /one}}]
""")
    trio[0].status = 500
    assert [ask(running).status for _ in range(3)] == [500] * 3, "the only endpoint is used whatever it is"
    dump = json.loads(running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")[1])
    host = next(one for one in dump["backends"] if "host" in one["backend"])["backend"]["host"]
    rejected = host["endpoints"][0]["rejected"][f"127.0.0.1:{trio[0].port}"]["info"]
    assert (rejected["consecutiveFailures"], rejected["timesEjected"], rejected["totalRequests"]) == (3, 1, 3)


def test_calls_under_way_are_shown(gateway: Callable[..., Any], trio: list[Member]) -> None:
    running = gateway(config(trio[:1]))
    trio[0].open.clear()
    answers: list[Answer] = []
    threads = [threading.Thread(target=lambda: answers.append(ask(running))) for _ in range(4)]
    for thread in threads:
        thread.start()
    wait_for(lambda: state(running, "a")["pendingRequests"] == 4)
    trio[0].open.set()
    for thread in threads:
        thread.join()
    assert state(running, "a")["pendingRequests"] == 0
    assert [answer.status for answer in answers] == [200] * 4


def test_bad_entries_are_told_all_at_once(gateway: Callable[..., Any], tmp_path: Any) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("""
gateways: {default: {port: 3000}}
services:
- {name: a, namespace: n, hostname: a.test, ports: {http: 80, 80: 0}}
- {name: b, namespace: n, hostname: a.test}
workloads:
- {uid: w, name: w, namespace: n, workloadIps: [no], services: {n/a.test: {80: 0}}}
- {uid: w, name: w, namespace: n}
routes:
- backends:
  - service: {name: n/a.test, port: 80}
    policies:
      health: {eviction: {restoreHealth: 2, healthThreshold: -1, consecutiveFailures: -1}, unhealthyExpression: 'x +'}
      sessionAffinity: {source: nobody.knows}
""")
    done = forked_rig.run("headgate.cli.main", "-f", str(path), "--validate-only")
    assert done.returncode == 1
    told = done.stdout + done.stderr
    for message in (
        "'http' is not a port", "service 'n/a.test' is defined twice",
        "'no' is no IP address", "0 is not a port", "workload 'w' is defined twice",
        "health.eviction.restoreHealth must be between 0.0 and 1.0",
        "health.eviction.healthThreshold must be between 0.0 and 1.0", "cannot be negative; 0 never ejects", "unhealthyExpression",
        "sessionAffinity.source",
    ):  # fmt: skip
        assert message in told, (message, told)
    path.write_text("""
services: [{name: b, namespace: n, hostname: a.test, waypoint: {x: 1}, ports: {80: 70000}}]
workloads: [{uid: w, name: w, namespace: n, authorizationPolicies: [x], locaton: x}]
""")
    done = forked_rig.run("headgate.cli.main", "-f", str(path), "--validate-only")
    told = done.stdout + done.stderr
    for message in ("not supported yet: services[0].waypoint", "out of range 0..65535", "workloads[0].authorizationPolicies",
                    "did you mean 'locality'?"):  # fmt: skip
        assert message in told, (message, told)
