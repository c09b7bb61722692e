"""Virtual keys: made, listed, changed, rotated and revoked at run time, and what each may use."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from postgres_rig import Server, postgres
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.federation_rig import SAMPLE, Raw
from tests.end_to_end.gwctl_rig import gwctl
from tests.end_to_end.page_rig import ask_admin
from tests.end_to_end.provider_stand_in import StandIn, whole
from tests.end_to_end.provider_stand_in import chat as answer
from tests.end_to_end.stored_rig import JSON, ask, put
from tests.end_to_end.virtual_keys_rig import FILE, Start, chat, make, settings, started

WORKERS = 3
# Enough connections for every worker to have several.
TRIES = 24


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as found:
        yield found


@pytest.fixture
def provider(stand_in: Any) -> StandIn:
    found: StandIn = stand_in(whole(answer()))
    return found


def test_a_key_works_from_its_making_to_its_revocation_in_all_workers(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db", WORKERS)
    assert chat(running, None).status_code == 401
    key = make(running, "ci", owner="ada", tags={"stage": "test"})
    assert key.startswith("hg-")
    assert len(key) == 3 + 43
    assert [chat(running, key).status_code for _ in range(TRIES)] == [200] * TRIES
    assert provider.last.headers["authorization"] == "Bearer sk-own"
    status, _ = ask(running, "POST", "/api/keys/ci/revoke", {})
    assert status == 200
    refused = [chat(running, key) for _ in range(TRIES)]
    assert [one.status_code for one in refused] == [401] * TRIES
    error = refused[0].json()["error"]
    assert (error["code"], "the key was revoked" in error["message"]) == ("invalid_api_key", True)
    [shown] = ask(running, "GET", "/api/keys")[1]["keys"]
    assert (shown["name"], shown["owner"], shown["tags"], shown["revoked"]) == ("ci", "ada", {"stage": "test"}, True)


def test_rotation_ends_the_old_key_and_deletion_the_new_one(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db", WORKERS)
    old = make(running, "ci", owner="ada")
    status, told = ask(running, "POST", "/api/keys/ci/rotate", {})
    assert (status, told["owner"]) == (200, "ada")
    new = told["key"]
    assert {chat(running, old).status_code for _ in range(TRIES)} == {401}
    assert {chat(running, new).status_code for _ in range(TRIES)} == {200}
    assert ask(running, "DELETE", "/api/keys/ci")[0] == 200
    assert {chat(running, new).status_code for _ in range(TRIES)} == {401}
    assert ask(running, "GET", "/api/keys/ci")[0] == 404
    assert ask(running, "POST", "/api/keys/ci/rotate", {})[0] == 404


def test_a_key_is_shown_once_and_only_its_hash_is_kept(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    key = make(running, "ci")
    digest = hashlib.sha256(key.encode()).hexdigest()
    [(text,)] = sqlite3.connect(tmp_path / "keys.db").execute("SELECT value FROM resources").fetchall()
    assert json.loads(text)["keyHash"] == f"sha256:{digest}"
    chat(running, key)
    everywhere = "".join(
        str(ask_admin(running, "GET", path)[2])
        for path in ("/api/keys", "/api/keys/ci", "/api/config/resources", "/api/config/effective", "/config_dump")
    ) + running.log()
    assert key not in everywhere
    assert digest not in everywhere
    assert key.encode() not in (tmp_path / "keys.db").read_bytes()


def test_what_a_key_may_use_and_what_it_inherits(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    assert ask(running, "PUT", "/api/teams/research", {"allowedModels": ["real"]})[0] == 200
    heir, own = make(running, "heir", team="research"), make(running, "own", team="research", allowedModels=["other"])
    elsewhere, here = make(running, "elsewhere", allowedRoutes=["mcp", "shop"]), make(running, "here", allowedRoutes=["llm"])
    assert [chat(running, heir, model).status_code for model in ("real", "other")] == [200, 403]
    assert [chat(running, own, model).status_code for model in ("real", "other")] == [403, 200]
    refused = chat(running, heir, "other")
    assert refused.json()["error"]["message"].startswith("the API key may not use the model 'other'")
    # The line has the model and the key's name, and so has the record of the request log.
    running.wait_log("api_key.name=heir")
    [line, *_] = [one for one in running.log().splitlines() if "api_key.name=heir" in one]
    assert "gen_ai.request.model=other" in line
    question = json.dumps({"filters": {"httpStatus": [403], "requestModel": ["other"]}, "includeAttributes": True}).encode()

    def recorded() -> bool:
        found = json.loads(ask_admin(running, "POST", "/api/logs/search", question, JSON)[2])["logs"]
        return any(one["attributes"].get("api_key.name") == "heir" for one in found)

    running.wait(recorded)
    assert heir not in running.log()
    refused = chat(running, elsewhere)
    assert (refused.status_code, "not for this route" in refused.json()["error"]["message"]) == (403, True)
    assert chat(running, here).status_code == 200
    # What the team says is in force for its keys at once.
    assert ask(running, "PUT", "/api/teams/research", {"allowedModels": ["other"]})[0] == 200
    assert [chat(running, heir, model).status_code for model in ("real", "other")] == [403, 200]
    listed = httpx.get(f"{running.url}/v1/models", headers={"authorization": f"Bearer {heir}"}).json()
    assert [one["id"] for one in listed["data"]] == ["other"]
    # A team with keys stays.
    status, told = ask(running, "DELETE", "/api/teams/research")
    assert (status, "there is no team 'research'" in told) == (422, True)


def test_a_key_expires(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    past, coming = make(running, "past", expires="2020-01-01T00:00:00Z"), make(running, "coming", expires="2120-01-01T00:00:00+02:00")
    refused = chat(running, past)
    assert (refused.status_code, "the key has expired" in refused.json()["error"]["message"]) == (401, True)
    assert chat(running, coming).status_code == 200
    assert ask(running, "PUT", "/api/keys/past", {"expires": "2120-01-01T00:00:00Z"})[0] == 200
    assert chat(running, past).status_code == 200


def test_the_official_client_works_with_a_virtual_key(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    client = openai.OpenAI(base_url=f"{running.url}/v1", api_key=make(running, "ci"), max_retries=0, timeout=60)
    found = client.chat.completions.create(model="real", messages=[{"role": "user", "content": "hi"}])
    assert found.choices[0].message.content == "hello"
    ask(running, "POST", "/api/keys/ci/revoke", {})
    with pytest.raises(openai.AuthenticationError, match="the key was revoked"):
        client.chat.completions.create(model="real", messages=[{"role": "user", "content": "hi"}])


def test_keys_of_a_file_stay_beside_those_that_are_made(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    hashed = hashlib.sha256(b"of-the-section").hexdigest()
    text = FILE.replace("PORT", str(provider.port)).replace("virtualKeys: true", "virtualKeys: true, keys: [{key: of-the-policy}]")
    text += f"virtualKeys: {{keys: [{{name: fixed, keyHash: 'sha256:{hashed}'}}]}}\n"
    running = gateway(text, settings=settings(f"sqlite://{tmp_path}/keys.db"))
    made = make(running, "made")
    assert [chat(running, key).status_code for key in ("of-the-policy", "of-the-section", made, "none")] == [200, 200, 200, 401]
    assert [(one["name"], one.get("owned")) for one in ask(running, "GET", "/api/keys")[1]["keys"]] == [("fixed", "file"), ("made", None)]
    for method, path in (("POST", "/api/keys/fixed/revoke"), ("DELETE", "/api/keys/fixed"), ("PUT", "/api/keys/fixed")):
        status, told = ask(running, method, path, None if method == "DELETE" else {})
        assert (status, "owned by the file" in told) == (409, True)
    assert ask(running, "POST", "/api/keys", {"name": "fixed"})[0] == 409


def test_tools_of_a_key_at_an_mcp_server(gateway: Start, tmp_path: Path) -> None:
    text = f"""
mcp:
  port: {{port}}
  policies: {{apiKey: {{virtualKeys: true, keys: [{{key: of-the-file}}]}}}}
  targets:
  - {{name: a, stdio: {{cmd: {json.dumps(SAMPLE.split('"')[1])}, args: ["-m", "headgate.sample.mcp_server"]}}}}
"""
    running = gateway(text, settings=settings(f"sqlite://{tmp_path}/keys.db"))
    tools = {
        make(running, "one", allowedTools=["echo"]): ["echo"],
        make(running, "placed", allowedTools=["a/add", "b/echo"]): ["add"],
        make(running, "target", allowedTools=["a/*"]): ["echo", "add", "slow"],
        make(running, "all"): ["echo", "add", "slow"],
        "of-the-file": ["echo", "add", "slow"],
    }
    for key, wanted in tools.items():
        raw = Raw(running, authorization=f"Bearer {key}")
        assert raw.names("tools/list", "tools") == wanted
        told = raw.post({"id": 9, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}})
        assert ("Unknown tool: add" in told.text) == ("add" not in wanted)
        assert raw.names("prompts/list", "prompts") == ["greet"]


REFUSED: list[tuple[Any, int, str]] = [
    ({}, 400, "a key needs a name"),
    ({"name": "a/b"}, 400, "a key needs a name"),
    ({"name": "a", "keyHash": "sha256:" + "0" * 64}, 400, "keyHash is set by the gateway"),
    ({"name": "a", "team": "nobody"}, 422, "there is no team 'nobody'"),
    ({"name": "a", "nonsense": 1}, 422, "unknown field 'nonsense'"),
    ({"name": "a", "expires": "tomorrow"}, 422, "not a time such as"),
    ({"name": "a", "expires": "2030-01-01T00:00:00"}, 422, "a time needs its zone"),
    ({"name": "a", "limits": [{"dollars": "1.0000000000001", "per": "day"}]}, 422, "at most 12 decimals"),
    ({"name": "a", "limits": [{"tokens": 1, "per": "day"}, {"tokens": 2, "per": "day"}]}, 422, "there are two limits"),
    ({"name": "a", "limits": [{"tokens": 1, "per": "week"}]}, 422, "week"),
    ({"name": "a", "allowedModels": ["*", "real"]}, 422, "must be the only entry"),
    ([], 400, "the body must be an object"),
]


@pytest.mark.parametrize(("body", "status", "words"), REFUSED, ids=[str(number) for number in range(len(REFUSED))])
@pytest.mark.warm
def test_what_is_refused_says_why_and_changes_nothing(gateway: Start, tmp_path_factory: Any, body: Any, status: int, words: str) -> None:
    folder = tmp_path_factory.getbasetemp() / "refused"
    running = gateway("gateways: {default: {port: {port}}}\nroutes: []\n", settings=settings(f"sqlite://{folder}/keys.db"))
    code, told = ask(running, "POST", "/api/keys", body)
    assert (code, words in told) == (status, True), told
    assert ask(running, "GET", "/api/keys")[1] == {"keys": []}


def test_without_a_database_nothing_is_made(gateway: Start, provider: StandIn) -> None:
    running = gateway(FILE.replace("PORT", str(provider.port)))
    status, told = ask(running, "POST", "/api/keys", {"name": "a"})
    assert (status, "set config.storage.mode to hybrid" in told) == (409, True)
    assert ask(running, "GET", "/api/keys") == (200, {"keys": []})
    assert ask_admin(running, "POST", "/api/keys", b"{}", {**JSON, "origin": "http://evil.test"})[0] == 403
    assert ask_admin(running, "POST", "/api/keys", b"{}", {"content-type": "text/plain"})[0] == 415


def test_another_replica_knows_of_a_revocation(gateway: Start, provider: StandIn, server: Server) -> None:
    url = server.url(server.database())
    one, other = started(gateway, provider, url), started(gateway, provider, url, WORKERS)
    key = make(one, "ci")
    other.wait(lambda: chat(other, key).status_code == 200)
    assert ask(one, "POST", "/api/keys/ci/revoke", {})[0] == 200
    other.wait(lambda: {chat(other, key).status_code for _ in range(TRIES)} == {401})


def test_keys_are_there_after_a_restart(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    kept, gone = make(running, "kept"), make(running, "gone")
    ask(running, "POST", "/api/keys/gone/revoke", {})
    assert running.stop() == 0
    again = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    assert [chat(again, key).status_code for key in (kept, gone)] == [200, 401]


def test_gwctl_makes_lists_rotates_and_revokes(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    port = str(running.admin)

    def run(*arguments: str) -> str:
        done = gwctl("keys", *arguments, "-p", port)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert run("team", "research", "--limit", "dollars=500/month@80", "--key-limit", "requests=60/minute") == "team research is written"
    key = run("create", "ci", "--team", "research", "--owner", "ada", "--model", "real", "--expires", "30d", "--tag", "stage=test")
    assert chat(running, key).status_code == 200
    assert chat(running, key, "other").status_code == 403
    new = run("rotate", "ci")
    assert [chat(running, one).status_code for one in (key, new)] == [401, 200]
    heads, row = run("list").splitlines()
    assert heads.split() == ["NAME", "TEAM", "OWNER", "STATE", "EXPIRES", "LIMITS"]
    assert row.split()[:4] == ["ci", "research", "ada", "active"]
    assert row.endswith("60 requests/minute (from the team), 500 dollars/month (whole team)")
    running.wait(lambda: json.loads(run("spend", "--by", "key,model", "-o", "json"))["rows"][-1]["calls"] == 2)
    heads, *rows = [line.split() for line in run("spend", "--by", "team,model").splitlines()]
    assert heads == ["TEAM", "MODEL", "REQUESTS", "CALLS", "INPUT", "OUTPUT", "COST"]
    assert [one[:4] for one in rows if "real" in one] == [["research", "real", "0", "2"]]
    assert gwctl("keys", "spend", "--by", "colour", "-p", port).returncode == 1
    assert json.loads(run("list", "-o", "json"))["keys"][0]["tags"] == {"stage": "test"}
    assert run("revoke", "ci") == "ci is revoked"
    assert chat(running, new).status_code == 401
    assert run("delete", "ci") == "ci is deleted"
    failed = gwctl("keys", "create", "x", "--limit", "dollars=5", "-p", port)
    assert (failed.returncode, "does not look like" in failed.stderr) == (1, True)
    failed = gwctl("keys", "revoke", "nobody", "-p", port)
    assert (failed.returncode, failed.stderr.strip()) == (1, "Error: there is no such key")


def test_stored_resources_know_keys_as_well(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running: Gateway = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    hashed = hashlib.sha256(b"brought along").hexdigest()
    assert put(running, "virtualKeys.key", {"name": "old", "keyHash": f"sha256:{hashed}"})[0] == 200
    assert chat(running, "brought along").status_code == 200
