"""Writing the configuration through the admin server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.end_to_end.conftest import Gateway, free_port
from tests.end_to_end.page_rig import ask_admin, call

pytestmark = pytest.mark.warm

JSON = {"content-type": "application/json"}
TEXT = """
# what answers
gateways: {default: {port: {port}}}
routes:
- {name: ok, policies: {directResponse: {status: 200, body: first}}}
- {name: far, matches: [{path: {pathPrefix: /far}}], backends: [{host: "127.0.0.1:1", policies: {backendAuth: {key: never-shown}}}]}
"""
PATHS = ("/api/config", "/api/config/text")


@pytest.fixture
def running(gateway: Callable[..., Gateway]) -> Gateway:
    return gateway(TEXT)


def get(running: Gateway, path: str = "/api/config") -> tuple[Any, str]:
    status, fields, body = ask_admin(running, "GET", path)
    assert status == 200
    return json.loads(body), fields.get("etag", "")


def post(running: Gateway, path: str, document: Any, **fields: str) -> tuple[int, Any]:
    status, answer, body = ask_admin(running, "POST", path, json.dumps(document).encode(), {**JSON, **fields})
    assert answer["content-type"] == "application/json"
    return status, json.loads(body)


def test_a_document_is_written_and_runs(running: Gateway) -> None:
    document, tag = get(running)
    assert "never-shown" not in json.dumps(document)
    document["routes"][0]["policies"]["directResponse"]["body"] = "second"
    status, found = post(running, "/api/config", document, **{"if-match": tag})
    assert (status, found["status"], found["message"]) == (200, "success", "Configuration written successfully")
    running.wait_log("configuration reloaded")
    assert call(running, "/") == (200, "second")
    text = running.path.read_text()
    assert text.startswith("# yaml-language-server: $schema=")
    assert "never-shown" in text
    assert "<redacted>" not in text
    assert "# what answers" in running.path.with_name("config.yaml.bak").read_text()
    assert get(running, "/api/config/effective")[0] == get(running)[0]
    assert post(running, "/api/config", document, **{"if-match": tag})[0] == 409
    assert post(running, "/api/config", document, **{"if-match": "*"})[0] == 200


def test_a_text_is_written_with_its_comments(running: Gateway) -> None:
    found, _ = get(running, "/api/config/text")
    assert found["mode"] == "file"
    assert "never-shown" not in found["text"]
    status, answer = post(running, "/api/config/text", {"text": found["text"].replace("first", "third"), "revision": found["revision"]})
    assert (status, answer["status"]) == (200, "success")
    running.wait_log("configuration reloaded")
    assert call(running, "/") == (200, "third")
    assert "# what answers" in running.path.read_text()
    assert get(running, "/api/config/text")[0]["revision"] == answer["revision"]


@pytest.mark.cold
def test_what_does_not_load_changes_nothing(running: Gateway) -> None:
    before = running.path.read_text()
    document, _ = get(running)
    document["routes"][0]["nonsense"] = 1
    assert post(running, "/api/config", document) == (500, "routes[0]: unknown field 'nonsense'")
    assert post(running, "/api/config", [])[0] == 500
    assert post(running, "/api/config", {"a": "\ud800"})[0] == 500
    deep = b'{"a":' * 900 + b"1" + b"}" * 900
    assert ask_admin(running, "POST", "/api/config", deep, JSON)[0] == 400
    text, _ = get(running, "/api/config/text")
    broken = {"text": text["text"].replace("status: 200", "status: none"), "revision": text["revision"]}
    line = 1 + broken["text"][: broken["text"].index("status: none")].count("\n")
    for path, wanted in (("/api/config/text", 422), ("/api/config/check", 200)):
        status, found = post(running, path, broken)
        assert status == wanted
        [fault] = found["errors"]
        assert (fault["path"], fault["line"]) == ("routes[0].policies.directResponse.status", line)
    assert post(running, "/api/config/check", {"text": text["text"]})[1]["errors"] == []
    assert post(running, "/api/config/text", {"text": "a: [}", "revision": text["revision"]})[1]["errors"][0]["line"] == 1
    assert running.path.read_text() == before
    assert not running.path.with_name("config.yaml.bak").exists()


def test_a_file_that_somebody_changed_is_not_overwritten(running: Gateway) -> None:
    document, tag = get(running)
    text, _ = get(running, "/api/config/text")
    theirs = running.path.read_text().replace("first", "theirs")
    running.put(theirs)
    for path, body, fields in (("/api/config", document, {"if-match": tag}), ("/api/config/text", {"text": text["text"], "revision": text["revision"]}, {})):
        status, reason = post(running, path, body, **fields)
        assert (status, reason) == (409, "the configuration file was changed in the meantime: read it again")
    assert running.path.read_text() == theirs


def test_a_secret_whose_place_is_not_certain_is_refused(running: Gateway) -> None:
    document, _ = get(running)
    document["routes"][0]["backends"] = document["routes"].pop()["backends"]
    del document["routes"][0]["policies"]
    status, reason = post(running, "/api/config", document)
    assert status == 500
    assert reason.startswith("routes[0].backends[0].policies.backendAuth.key: it is not clear here which secret <redacted> stands for")


@pytest.mark.parametrize(("settings", "environment"), [("storage: {mode: readOnly}", None), ("", {"UI_READ_ONLY": "true"})], ids=["file", "environment"])
def test_read_only_means_that(gateway: Callable[..., Gateway], settings: str, environment: dict[str, str] | None) -> None:
    found = gateway(TEXT, settings=settings, environment=environment)
    assert get(found, "/api/runtime")[0]["ui"]["configStoreMode"] == "readOnly"
    before = found.path.read_text()
    for path in PATHS:
        assert post(found, path, {}) == (403, "the configuration is read-only")
    assert get(found, "/api/config/text")[0]["mode"] == "readOnly"
    assert found.path.read_text() == before


@pytest.mark.cold
def test_an_admin_server_that_others_reach_is_warned_of(gateway: Callable[..., Gateway]) -> None:
    word = "anyone who can reach the admin server can write the configuration"
    for settings, told in (("", True), ("storage: {mode: readOnly}", False)):
        found = gateway(TEXT, settings=settings, environment={"ADMIN_ADDR": f"0.0.0.0:{free_port()}"})
        found.wait_log("admin page")
        assert (word in found.log()) is told


@pytest.mark.parametrize("path", [*PATHS, "/api/config/check"])
def test_other_sites_cannot_write(running: Gateway, path: str) -> None:
    before = running.path.read_text()
    for fields, status in (({"content-type": "text/plain"}, 415), ({**JSON, "origin": "http://localhost:3000"}, 403), ({**JSON, "sec-fetch-site": "cross-site"}, 403)):
        assert ask_admin(running, "POST", path, json.dumps({"text": "{}"}).encode(), fields)[0] == status
    assert running.path.read_text() == before


@pytest.mark.cold
def test_a_folder_that_cannot_be_written_is_told(running: Gateway) -> None:
    # Root writes everywhere: a name that is a folder stands in for a file system without room or rights.
    running.path.with_name("config.yaml.bak").mkdir()
    document, _ = get(running)
    document["routes"][0]["name"] = "other"
    status, reason = post(running, "/api/config", document)
    assert status == 500
    assert reason == f"cannot write {running.path}: Is a directory"
    assert "name: ok" in running.path.read_text()


@pytest.mark.parametrize("path", ["/api/config", "/api/config/text", "/api/config/check"])
def test_deep_json_is_the_clients_fault(running: Gateway, path: str) -> None:
    deep = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    status, _, body = ask_admin(running, "POST", path, deep, JSON)
    assert (status, "nested too deeply" in json.dumps(json.loads(body))) == (400, True)


EMPTY = [
    ("/api/config", {}),
    ("/api/config", {"config": {}}),
    ("/api/config", {"gateways": {"default": {"port": 1}}}),
    ("/api/config", {"routes": []}),
    ("/api/config/text", {"text": ""}),
    ("/api/config/text", {"text": "# nothing\n"}),
    ("/api/config/text", {"text": "{}"}),
]


def test_what_would_drop_all_routes_asks_for_confirmation(running: Gateway) -> None:
    before = running.path.read_bytes()
    for path, body in EMPTY:
        status, reason = post(running, path, body)
        assert (status, "confirm=empty" in reason) == (428, True), (path, body)
        for query in ("?confirm", "?confirm=", "?confirm=yes", "?empty=confirm"):
            assert post(running, path + query, body)[0] == 428
    assert running.path.read_bytes() == before
    assert call(running, "/") == (200, "first")
    # A revision that is not the file's comes first: nobody confirms what he has not seen.
    assert post(running, "/api/config?confirm=empty", {}, **{"if-match": '"other"'})[0] == 409
    # What leaves one route is written as ever.
    document, _ = get(running)
    document["routes"] = document["routes"][:1]
    assert post(running, "/api/config", document)[0] == 200
    assert post(running, "/api/config", {})[0] == 428
    kept = {"config": document["config"]}
    assert post(running, "/api/config?confirm=empty", kept)[0] == 200
    running.wait_log("configuration reloaded")
    # A file that serves nothing may be replaced by another.
    assert post(running, "/api/config", kept)[0] == 200
