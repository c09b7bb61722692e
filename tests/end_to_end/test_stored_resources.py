"""Configuration in a database beside the file, in a file of SQLite and in a real PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from postgres_rig import Server, postgres
from tests import forked_rig
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.page_rig import ask_admin, call
from tests.end_to_end.provider_stand_in import chat, whole
from tests.end_to_end.stored_rig import FILE, Writer, ask, delete, kill, place, put, put_one, route, settings, stored

Start = Callable[..., Gateway]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as found:
        yield found


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database that is empty."""
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/stored.db"
    found: Server = request.getfixturevalue("server")
    return found.url(found.database())


def test_resources_are_created_read_changed_and_removed(gateway: Start, url: str) -> None:
    running = gateway(FILE, settings=settings(url))
    assert stored(running) == {}
    status, answer = put(running, "traffic.route", route("a", "first"))
    assert (status, answer["status"], answer["message"]) == (200, "success", "Configuration resource written successfully")
    # It is in force when it is answered.
    assert call(running, "/a") == (200, "first")
    assert call(running, "/owned") == (200, "file")
    status, one = ask(running, "GET", place("traffic.route", "a"))
    assert (status, one["kind"], one["id"], one["value"]) == (200, "traffic.route", "a", route("a", "first"))
    assert one["createdAt"] == one["updatedAt"]
    assert put_one(running, "traffic.route", "a", route("a", "second"))[0] == 200
    assert call(running, "/a") == (200, "second")
    _, later = ask(running, "GET", place("traffic.route", "a"))
    assert (later["createdAt"], later["revision"] > one["revision"]) == (one["createdAt"], True)
    assert later["updatedAt"] > one["updatedAt"]
    assert delete(running, "traffic.route", "a") == (200, {"status": "success", "message": "Configuration resource deleted successfully"})
    assert call(running, "/a")[0] == 404
    assert delete(running, "traffic.route", "a")[0] == 404
    assert stored(running) == {}
    assert ask(running, "GET", "/api/runtime")[1]["ui"]["configStoreMode"] == "hybrid"


def test_what_is_stored_is_in_the_dump_in_the_effective_configuration_and_in_validation(gateway: Start, url: str) -> None:
    running = gateway(FILE, settings=settings(url))
    put(running, "traffic.route", route("a", "first"))
    put(running, "llm.model", {"name": "m/1", "provider": "openai", "params": {"apiKey": "sk-never-shown"}})
    dump = ask_admin(running, "GET", "/config_dump")[2].decode()
    assert '"default/a"' in dump
    assert "m/1" in dump
    status, effective = ask(running, "GET", "/api/config/effective")
    assert status == 200
    assert [one["name"] for one in effective["routes"]] == ["owned", "a"]
    assert effective["llm"]["models"] == [{"name": "m/1", "provider": "openai", "params": {"apiKey": "<redacted>"}}]
    everything = dump + json.dumps([ask(running, "GET", path)[1] for path in (place(), place("llm.model"), place("llm.model", "m/1"))]) + running.log()
    assert "never-shown" not in everything
    assert "llm" not in ask(running, "GET", "/api/config")[1]
    done = forked_rig.run("headgate.cli.main", "--validate-only", "-f", str(running.path))
    assert (done.returncode, done.stdout.strip()) == (0, "Configuration is valid!"), done.stderr
    # The file is checked with what is stored: this gateway is one that the model needs.
    text = running.path.read_text().replace("routes:", "llm: {gateways: nowhere, models: []}\nroutes:")
    found = ask(running, "POST", "/api/config/check", {"text": text})[1]
    assert "unknown gateway reference nowhere" in str(found["errors"])


def test_everything_stored_is_there_after_a_restart(gateway: Start, url: str) -> None:
    running = gateway(FILE, settings=settings(url))
    put(running, "traffic.route", *(route(f"r{number}", str(number)) for number in range(5)))
    before = stored(running)
    assert running.stop() == 0
    again = gateway(FILE, settings=settings(url))
    assert stored(again) == before
    assert [call(again, f"/r{number}") for number in range(5)] == [(200, str(number)) for number in range(5)]
    assert again.metric("gw_config_resources") == 5


def test_a_kill_in_the_middle_of_writing_loses_nothing_that_was_answered(gateway: Start, url: str) -> None:
    """Whatever a change had come to, the next start has the last one that was answered, or the one that was under way."""
    last = 0
    for _ in range(3):
        running = gateway(FILE, settings=settings(url))
        if last:
            [found] = [int(one["policies"]["directResponse"]["body"]) for one in stored(running).values()]
            assert found in (last, last + 1)
            assert call(running, "/changing") == (200, str(found))
        writer = Writer(running)
        running.wait(lambda writer=writer: writer.answered >= 4)
        kill(running)
        writer.wait()
        last = writer.answered
        assert writer.begun - last <= 1


REFUSED: list[tuple[str, Any, int, str]] = [
    ("traffic.route", {"name": "owned"}, 409, "traffic.route/owned is owned by the file"),
    ("traffic.gateway", {"name": "default", "port": 1}, 409, "traffic.gateway/default is owned by the file"),
    ("traffic.route", {"matches": []}, 400, "the value needs name, or the resource an id"),
    ("traffic.route", [], 400, "the value must be an object"),
    ("llm.policy", {"cors": {}, "csrf": {}}, 400, "the value must have one key, which is the name of the policy"),
    ("mcp.settings", {"targets": []}, 400, "the value may have gateways, port, statefulMode"),
    ("traffic.route", {"name": "x", "nonsense": 1}, 422, "unknown field 'nonsense' (resource traffic.route/x)"),
    ("traffic.route", route("x", "y", gateways="nowhere"), 422, "unknown gateway reference nowhere (resource traffic.route/x)"),
    ("llm.apiKey", {"key": "sk-never-shown", "metadata": {"name": "bob"}}, 200, "no effect"),
    ("llm.nonsense", {}, 404, "there is no such kind"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "status", "words"), REFUSED, ids=[one[3][:40] for one in REFUSED])
def test_what_is_refused_changes_nothing_and_says_why(gateway: Start, tmp_path: Path, kind: str, value: Any, status: int, words: str) -> None:
    running = gateway(FILE, settings=settings(f"sqlite://{tmp_path}/stored.db"))
    code, answer = put(running, kind, value)
    if status == 200:
        assert code == 200
        running.wait_log(words)
        return
    assert (code, words in answer) == (status, True), answer
    assert stored(running) == {}
    assert call(running, "/owned") == (200, "file")
    assert running.metric("gw_config_generation") == 1
    assert running.metric("gw_config_synchronized") == 1


def test_all_errors_of_all_resources_are_told_at_once(gateway: Start, tmp_path: Path) -> None:
    running = gateway(FILE, settings=settings(f"sqlite://{tmp_path}/stored.db"))
    bad = [{"name": "a", "matches": [{"path": {"exact": "a"}}], "x": 1}, {"name": "b", "policies": {"timeout": {"requestTimeout": "long"}}}]
    status, answer = put(running, "traffic.route", *bad, route("good", "good"))
    assert status == 422
    lines = answer.splitlines()
    assert len(lines) == 3
    assert "matches[0].path.exact: a path must begin with /: 'a' (resource traffic.route/a)" in lines
    assert any(line.startswith("policies.timeout.requestTimeout: ") and line.endswith("(resource traffic.route/b)") for line in lines)
    assert stored(running) == {}


def test_what_workers_refuse_is_not_stored(gateway: Start, url: str) -> None:
    """A port that another program has is found when sockets are opened, behind all checks of the text."""
    running = gateway(FILE, settings=settings(url))
    taken = {"name": "taken", "port": running.stats}
    status, answer = put(running, "traffic.gateway", taken)
    assert (status, "is already in use" in answer) == (422, True)
    assert stored(running) == {}
    assert put(running, "traffic.gateway", {"name": "second", "port": running.spare})[0] == 200
    assert put(running, "traffic.route", route("s", "second", gateways="second"))[0] == 200
    assert running.fetch(f"http://127.0.0.1:{running.spare}/s") == (200, "second")
    # The route needs it.
    status, answer = delete(running, "traffic.gateway", "second")
    assert (status, "unknown gateway reference second (resource traffic.route/s)" in answer) == (422, True)
    assert running.fetch(f"http://127.0.0.1:{running.spare}/s") == (200, "second")


def test_a_change_is_based_on_the_revision_that_it_names(gateway: Start, url: str) -> None:
    running = gateway(FILE, settings=settings(url))
    assert put_one(running, "traffic.route", "a", route("a", "one"), if_none_match="*")[0] == 200
    assert put_one(running, "traffic.route", "a", route("a", "two"), if_none_match="*") == (409, "traffic.route/a exists")
    fields = ask_admin(running, "GET", place("traffic.route", "a"))[1]
    tag = fields["etag"]
    assert put_one(running, "traffic.route", "a", route("a", "two"), if_match=tag)[0] == 200
    changed = "traffic.route/a was changed in the meantime: read it again"
    assert put_one(running, "traffic.route", "a", route("a", "three"), if_match=tag) == (409, changed)
    assert delete(running, "traffic.route", "a", if_match=tag) == (409, changed)
    assert call(running, "/a") == (200, "two")
    # What was listed can be sent back: its revision counts.
    [entry] = [one for one in ask(running, "GET", place("traffic.route"))[1]["resources"] if "revision" in one]
    assert ask(running, "PUT", place("traffic.route"), {"resources": [entry]})[0] == 200
    assert ask(running, "PUT", place("traffic.route"), {"resources": [entry]})[0] == 409
    assert delete(running, "traffic.route", "a", if_match="*")[0] == 200


def test_a_hidden_secret_stays_what_it_is(gateway: Start, stand_in: Callable[..., Any], tmp_path: Path) -> None:
    provider = stand_in(whole(chat()))
    running = gateway("gateways: {default: {port: {port}}}\n", settings=settings(f"sqlite://{tmp_path}/stored.db"))
    model = {"name": "m", "provider": "openai", "params": {"apiKey": "sk-never-shown", "baseUrl": f"http://127.0.0.1:{provider.port}/v1"}}
    assert put(running, "llm.model", model)[0] == 200
    shown = ask(running, "GET", place("llm.model", "m"))[1]["value"]
    assert shown["params"]["apiKey"] == "<redacted>"
    shown["visibility"] = "public"
    assert put(running, "llm.model", shown)[0] == 200
    assert call(running, "/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "hi"}]})[0] == 200
    assert provider.seen[0].headers["authorization"] == "Bearer sk-never-shown"
    # Under another name nobody knows what the mark stands for.
    status, answer = put(running, "llm.model", {**shown, "name": "other"})
    assert (status, answer.startswith("params.apiKey: it is not clear here which secret <redacted> stands for")) == (400, True)
    assert "never-shown" not in running.log()


def test_keys_need_a_policy_that_asks_for_them(gateway: Start, tmp_path: Path) -> None:
    """The last key that is removed leaves a policy without keys, and not models that ask for none."""
    running = gateway("gateways: {default: {port: {port}}}\n", settings=settings(f"sqlite://{tmp_path}/stored.db"))
    put(running, "llm.model", {"name": "m", "provider": "openai", "params": {"baseUrl": "http://127.0.0.1:1/v1"}})
    key = {"key": "sk-never-shown", "metadata": {"name": "bob"}}
    status, answer = put(running, "llm.apiKey", key)
    assert (status, "the keys need the policy" in answer) == (422, True)
    question = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    assert put(running, "llm.policy", {"apiKey": {"keys": []}})[0] == 200
    assert call(running, "/v1/chat/completions", question)[0] == 401
    assert put(running, "llm.apiKey", key)[0] == 200
    assert call(running, "/v1/chat/completions", question, authorization="Bearer sk-never-shown")[0] == 503
    assert delete(running, "llm.policy", "apiKey")[0] == 422
    assert delete(running, "llm.apiKey", "bob")[0] == 200
    assert call(running, "/v1/chat/completions", question, authorization="Bearer sk-never-shown")[0] == 401
    assert call(running, "/v1/chat/completions", question)[0] == 401


def test_a_file_that_comes_to_define_a_resource_wins(gateway: Start, tmp_path: Path) -> None:
    running = gateway(FILE, settings=settings(f"sqlite://{tmp_path}/stored.db"))
    put(running, "traffic.route", route("a", "stored"))
    running.reload(FILE + "- {name: a, matches: [{path: {exact: /a}}], policies: {directResponse: {status: 200, body: file}}}\n")
    assert call(running, "/a") == (200, "file")
    running.wait_log("traffic.route/a: left out, because the file also defines it")
    assert put(running, "traffic.route", route("a", "new"))[0] == 409
    # It is still stored, and can be removed.
    assert stored(running) == {"traffic.route/a": route("a", "stored")}
    running.reload(FILE)
    assert call(running, "/a") == (200, "stored")
    assert delete(running, "traffic.route", "a")[0] == 200


def test_a_file_that_does_not_load_with_what_is_stored_is_refused(gateway: Start, tmp_path: Path) -> None:
    text = "gateways: {default: {port: {port}}, second: {port: SECOND}}\n"
    running = gateway("gateways: {default: {port: {port}}}\n", settings=settings(f"sqlite://{tmp_path}/stored.db"))
    running.reload(text.replace("SECOND", str(running.spare)))
    put(running, "traffic.route", route("s", "second", gateways="second"))
    running.write("gateways: {default: {port: {port}}}\n")
    running.wait_log("unknown gateway reference second (resource traffic.route/s)")
    running.wait_metric("gw_config_synchronized", 0)
    assert running.fetch(f"http://127.0.0.1:{running.spare}/s") == (200, "second")
    # Without the resource the file loads, and the change brings it in.
    assert delete(running, "traffic.route", "s")[0] == 200
    running.wait_metric("gw_config_synchronized", 1)
    assert "second" not in str(ask(running, "GET", "/api/config/effective")[1])


def test_a_thousand_resources(gateway: Start, url: str) -> None:
    running = gateway(FILE, settings=settings(url))
    assert put(running, "traffic.route", *(route(f"r{number}", str(number)) for number in range(1000)))[0] == 200
    assert len(stored(running)) == 1000
    assert put(running, "traffic.route", route("r500", "changed"))[0] == 200
    assert delete(running, "traffic.route", "r501")[0] == 200
    assert [call(running, path) for path in ("/r0", "/r500", "/r999")] == [(200, "0"), (200, "changed"), (200, "999")]
    assert call(running, "/r501")[0] == 404
    running.wait_metric("gw_config_resources", 999)
    assert running.stop() == 0
    again = gateway(FILE, settings=settings(url))
    assert call(again, "/r500") == (200, "changed")
    assert list(stored(again))[:2] == ["traffic.route/r0", "traffic.route/r1"]


def test_the_rules_of_the_admin_server_hold(gateway: Start, tmp_path: Path) -> None:
    running = gateway(FILE, settings=settings(f"sqlite://{tmp_path}/stored.db"))
    body = json.dumps({"resources": [{"value": route("a", "x")}]}).encode()
    json_type = {"content-type": "application/json"}
    for fields in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert ask_admin(running, "PUT", place("traffic.route"), body, {**json_type, **fields})[0] == 403
        assert ask_admin(running, "DELETE", place("traffic.route", "a"), None, fields)[0] == 403
        assert ask_admin(running, "GET", place(), None, fields)[0] == 403
    assert ask_admin(running, "PUT", place("traffic.route"), body, {**json_type, "host": "evil.example"})[0] == 421
    assert ask_admin(running, "PUT", place("traffic.route"), body, {"content-type": "text/plain"})[0] == 415
    for broken in (b"", b"[]", b"{}", b'{"resources": []}', b'{"resources": [1]}', b'{"resources": [{"value": NaN}]}', b"[" * 100_000):
        assert ask_admin(running, "PUT", place("traffic.route"), broken, json_type)[0] == 400
    assert ask_admin(running, "PUT", place("traffic.route"), b" " * (1 << 21), json_type)[0] == 413
    deep: Any = "x"
    for _ in range(150):
        deep = [deep]
    assert put(running, "traffic.route", {"name": "a", "deep": deep}) == (400, "a value can have at most 100 levels")
    assert ask_admin(running, "POST", place("traffic.route"), body, json_type)[0] == 405
    assert ask(running, "PUT", place(), {"resources": []})[0] == 405
    assert stored(running) == {}


@pytest.mark.parametrize(("mode", "environment", "status"), [("readOnly", {}, 403), ("file", {}, 409), ("hybrid", {"UI_READ_ONLY": "true"}, 403)])
def test_other_modes_store_nothing(gateway: Start, tmp_path: Path, mode: str, environment: dict[str, str], status: int) -> None:
    """`UI_READ_ONLY` takes away the right to write, and not what is stored."""
    url = f"sqlite://{tmp_path}/stored.db"
    first = gateway(FILE, settings=settings(url))
    assert put(first, "traffic.route", route("a", "stored"))[0] == 200
    assert first.stop() == 0
    running = gateway(FILE, environment=environment, settings=settings(url).replace("hybrid", mode))
    assert put(running, "traffic.route", route("b", "x"))[0] == status
    assert delete(running, "traffic.route", "a")[0] == status
    assert call(running, "/a")[0] == (200 if mode == "hybrid" else 404)
    assert [one["id"] for one in ask(running, "GET", place("traffic.route"))[1]["resources"]][:1] == ["owned"]
    # The view of the page is there where something is stored.
    assert ("resources" in ask(running, "GET", "/api/state")[1]["offers"]) is (mode == "hybrid")


def test_a_gateway_that_shares_a_file_sees_what_another_one_stores(gateway: Start, tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/stored.db"
    one, other = gateway(FILE, settings=settings(url)), gateway(FILE, settings=settings(url))
    assert put(one, "traffic.route", route("a", "shared"))[0] == 200
    other.wait(lambda: call(other, "/a") == (200, "shared"))
    assert delete(other, "traffic.route", "a")[0] == 200
    one.wait(lambda: call(one, "/a")[0] == 404)


def test_the_mode_may_come_and_go_with_a_reload(gateway: Start, tmp_path: Path) -> None:
    running = gateway(FILE, settings=settings(f"sqlite://{tmp_path}/stored.db").replace("hybrid", "file"))
    text = running.path.read_text()
    running.put(text.replace("mode: file", "mode: hybrid"))
    running.wait(lambda: put(running, "traffic.route", route("a", "stored"))[0] == 200)
    running.put(text)
    running.wait(lambda: call(running, "/a")[0] == 404)
    running.put(text.replace("mode: file", "mode: hybrid"))
    running.wait(lambda: call(running, "/a") == (200, "stored"))


def test_the_api_is_behind_a_listener_with_a_login(gateway: Start, tmp_path: Path) -> None:
    text = """
    gateways: {default: {port: {port}}}
    ui:
      gateways: default
      policies: {basicAuth: {htpasswd: "ada:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="}}
    """
    running = gateway(text, workers=2, settings=settings(f"sqlite://{tmp_path}/stored.db"))
    login = {"authorization": "Basic YWRhOnBhc3N3b3Jk", "content-type": "application/json"}
    body = json.dumps({"value": route("a", "stored")}).encode()
    target = f"{running.url}{place('traffic.route', 'a')}"
    assert running.fetch(target, "PUT", data=body, headers={"content-type": "application/json"})[0] == 401
    assert running.fetch(target, "PUT", data=body, headers={**login, "origin": "http://evil.example"})[0] == 403
    assert running.fetch(target, "PUT", data=body, headers=login)[0] == 200
    assert call(running, "/a") == (200, "stored")
    assert running.fetch(target, "DELETE", headers=login)[0] == 200
    assert call(running, "/a")[0] == 404
