"""The prices of models at the admin server, and fetching them anew."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.page_rig import ask_admin

JSON = {"content-type": "application/json"}
TEXT = "gateways: {default: {port: {port}}}\nroutes: [{name: ok, policies: {directResponse: {status: 200, body: ok}}}]\n"
DATA = {"openai": {"models": {"gpt-x": {"cost": {"input": 2.5, "output": 10, "cache_read": 0.25}}, "old": {"status": "deprecated", "cost": {"input": 1}}}},
        "google": {"models": {"gemini-x": {"cost": {"input": 1.25, "output": 5, "context_over_200k": {"input": 2.5}}}, "free": {}}}}  # fmt: skip
OWN = '{"providers": {"openai": {"models": {"gpt-x": {"rates": {"output": "9"}}}}}}'
SETTINGS = f"modelCatalog: [{{file: base.json}}, {{inline: '{OWN}'}}]"


class Host:
    """What the data set is fetched from."""

    def __init__(self) -> None:
        self.status, self.body = 200, json.dumps(DATA).encode()
        host = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(host.status)
                self.send_header("content-length", str(len(host.body)))
                self.end_headers()
                self.wfile.write(host.body)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/api.json"


@pytest.fixture
def host() -> Iterator[Host]:
    found = Host()
    yield found
    found.server.shutdown()
    found.server.server_close()


def models(running: Gateway) -> dict[str, Any]:
    status, _, body = ask_admin(running, "GET", "/api/costs/models")
    assert status == 200
    return dict(json.loads(body))


def refresh(running: Gateway) -> tuple[int, Any]:
    status, _, body = ask_admin(running, "POST", "/api/costs/refresh-base", b"{}", JSON)
    return status, json.loads(body)


def test_prices_are_fetched_and_what_stands_behind_them_still_wins(gateway: Callable[..., Gateway], host: Host) -> None:
    running = gateway(TEXT, settings=SETTINGS, environment={"MODEL_CATALOG_SOURCE": host.url})
    before = models(running)
    assert [(one["provider"], one["model"], one["rates"]) for one in before["models"]] == [("openai", "gpt-x", {"output": "9"})]
    base = running.path.parent / "base.json"
    assert (before["baseFile"], before["files"]) == (str(base), [])
    status, found = refresh(running)
    assert (status, found["status"], found["models"], found["providers"], found["unpriced"]) == (200, "success", 2, 2, 1)
    running.wait_log("configuration reloaded")
    after = {one["model"]: one for one in models(running)["models"]}
    assert after["gpt-x"]["rates"] == {"input": "2.5", "output": "9", "cacheRead": "0.25"}
    assert after["gemini-x"]["provider"] == "gcp.gemini"
    assert after["gemini-x"]["tiers"] == [{"contextOver": 200000, "rates": {"input": "2.5"}}]
    assert models(running)["files"] == [str(base)]
    # What cannot be used leaves the file as it is.
    held = base.read_text()
    for host.status, host.body, reason in ((500, b"", "status 500"), (200, b"<html>", "not JSON"), (200, b"{}", "no model has a price")):
        status, told = refresh(running)
        assert status == 502
        assert reason in told
    host.server.shutdown()
    host.server.server_close()
    assert refresh(running)[0] == 502
    assert base.read_text() == held


def test_without_a_file_there_is_nothing_to_refresh(gateway: Callable[..., Gateway]) -> None:
    running = gateway(TEXT)
    assert models(running) == {"models": [], "version": None, "files": [], "baseFile": None}
    assert refresh(running) == (404, "there is no base file: set one in config.modelCatalog")


def test_read_only_and_other_sites(gateway: Callable[..., Gateway], host: Host) -> None:
    running = gateway(TEXT, settings=SETTINGS + "\nstorage: {mode: readOnly}", environment={"MODEL_CATALOG_SOURCE": host.url})
    assert refresh(running) == (403, "the configuration is read-only")
    for fields, status in (({}, 415), ({**JSON, "origin": "http://evil.example"}, 403)):
        assert ask_admin(running, "POST", "/api/costs/refresh-base", b"{}", fields)[0] == status
    assert not (running.path.parent / "base.json").exists()
