"""The files of `examples/` do what they say, beside stand-ins for the services, vendors and providers that they name."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import openai
import pytest
import trustme
from example_files import lay_out
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from tests.end_to_end.connect_proxy import ConnectProxy
from tests.end_to_end.ext_authz_rig import serving_authorizer
from tests.end_to_end.ext_proc_rig import BodyBackend, ProcessorPeer, picking
from tests.end_to_end.fake_provider import FakeProvider
from tests.end_to_end.federation_rig import Raw
from tests.end_to_end.identity_rig import JWKS, token
from tests.end_to_end.oidc_rig import ENVIRONMENT, Browser
from tests.end_to_end.provider_stand_in import StandIn, chat, whole
from tests.end_to_end.redis_rig import RedisServer, needs_redis
from tests.end_to_end.running import free_port
from tests.end_to_end.tls_rig import tls_upstream

pytestmark = pytest.mark.warm

EXAMPLES = Path(__file__).parents[2] / "examples"
Start = Callable[..., Any]


@pytest.fixture
def start(gateway: Start, tmp_path: Path) -> Start:
    """`start(name, **environment)` runs an example on a port of its own. Its certificates are below `tmp_path`."""

    def begin(name: str, **environment: object) -> Any:
        text = (EXAMPLES / f"{name}.yaml").read_text().replace("certs/", f"{tmp_path}/certs/")
        text, count = re.subn(r"port: (3000|3443|4000)\b", "port: {port}", text)
        assert count == 1
        settings = re.search(r"^config:\n((?:  .*\n)+)", text, re.MULTILINE)
        if settings:
            text = text.replace(settings[0], "")
        return gateway(text, environment={key: str(value) for key, value in environment.items()}, settings=settings[1] if settings else "")

    lay_out(tmp_path)
    return begin


@pytest.fixture
def service() -> Iterator[StandIn]:
    found = StandIn(whole({"fine": True}))
    yield found
    found.close()


def place(stand_in: Any) -> str:
    return f"127.0.0.1:{stand_in.port}"


def chance(share: float) -> dict[str, object]:
    return {"FAULT_SHARE": share}


def test_faults_are_injected(start: Start, service: StandIn) -> None:
    never = start("fault-injection", SERVICE=place(service), **chance(0.0))
    answer = httpx.get(never.url, headers={"x-fault-status": "503"}, timeout=60)
    assert (answer.status_code, answer.text, answer.headers["x-fault"]) == (503, "injected", "asked for")
    begun = time.monotonic()
    assert httpx.get(never.url, headers={"x-fault-delay": "700"}, timeout=60).status_code == 200
    assert time.monotonic() - begun >= 0.7
    assert "x-fault-delay" not in service.last.headers
    assert httpx.get(never.url, headers={"x-fault-delay": "5000"}, timeout=60).status_code == 504
    always = start("fault-injection", SERVICE=place(service), **chance(1.1))
    answer = httpx.get(always.url, timeout=60)
    assert (answer.status_code, answer.headers["x-fault"]) == (503, "by chance")


@needs_redis
def test_replicas_share_a_limit(start: Start, service: StandIn, tmp_path: Path) -> None:
    redis = RedisServer(tmp_path)
    both = [start("shared-limits", SERVICE=place(service), REDIS_URL=f"redis://127.0.0.1:{redis.port}") for _ in range(2)]
    try:
        # Of 5 requests an hour a replica leases one at a time.
        statuses = [httpx.get(both[number % 2].url, timeout=60).status_code for number in range(12)]
        assert statuses.count(200) == 5
        assert set(statuses) == {200, 429}
    finally:
        redis.stop()


@pytest.mark.cold
def test_configuration_is_stored(start: Start) -> None:
    running = start("stored-configuration")
    command = re.search(r"-d '(.*)'", (EXAMPLES / "stored-configuration.yaml").read_text())
    assert command is not None
    target = f"http://127.0.0.1:{running.admin}/api/config/resources/traffic.route/hello"
    assert httpx.put(target, content=command[1], headers={"content-type": "application/json"}, timeout=60).status_code == 200
    assert [httpx.get(f"{running.url}{path}", timeout=60).text for path in ("/", "/healthz")] == ["hello", "fine"]


def test_route_groups_lead_to_teams(start: Start, service: StandIn) -> None:
    running = start("route-groups", SHOP_KEY="k", CARTS=place(service), SEARCH=place(service))
    key = {"authorization": "Bearer k"}
    answer = httpx.get(f"{running.url}/shop/carts/7", headers=key, timeout=60)
    assert (answer.status_code, answer.headers["x-team"], service.last.path) == (200, "shop", "/carts/7")
    assert httpx.get(f"{running.url}/shop/carts/7", timeout=60).status_code == 401
    answer = httpx.get(f"{running.url}/shop/teas", headers=key, timeout=60)
    assert (answer.text, answer.headers["x-team"]) == ("no tea today", "teas")
    assert httpx.get(f"{running.url}/shop/else", headers=key, timeout=60).status_code == 404
    assert httpx.get(f"{running.url}/search/x", timeout=60).status_code == 200
    assert service.last.path == "/search/x"


def test_two_kinds_of_clients_share_an_internal_port(start: Start, service: StandIn) -> None:
    running = start("internal-ports", SERVICE=place(service), PARTNERS="k")
    answer = httpx.get(f"{running.url}/partner/a", headers={"authorization": "Bearer k"}, timeout=60)
    assert (answer.status_code, answer.headers["x-served-by"]) == (200, "api")
    assert (service.last.path, service.last.headers["x-client"]) == ("/a", "partner")
    assert httpx.get(f"{running.url}/partner/a", timeout=60).status_code == 401
    assert httpx.get(f"{running.url}/b", timeout=60).status_code == 200
    assert (service.last.path, service.last.headers["x-client"]) == ("/b", "anyone")


def test_a_service_prefers_its_own_zone(start: Start, service: StandIn, gateway: Start) -> None:
    text = (EXAMPLES / "services.yaml").read_text().replace("port: 3000", "port: {port}").replace("8080", str(service.port))
    running = gateway(text, environment={"LOCALITY": "eu/eu-1"})
    for _ in range(10):
        assert httpx.get(f"{running.url}/items", timeout=60).status_code == 200
    assert service.last.path == "/items"


def test_an_egress_proxy_leads_to_listed_destinations_alone(start: Start, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "certs" / "server.crt")
    proxy = ConnectProxy({"api.partner.example:443": tls_upstream(authority, "api.partner.example")})
    running = start("egress-proxy", PARTNER_KEY="pk", PROXY_KEY="cHJveHk6aHVudGVyMg==", PROXY=place(proxy))
    with httpx.Client(base_url=running.url, timeout=60) as client:
        answer = client.get("/v1/orders", headers={"host": "partner.egress"})
        assert (answer.status_code, answer.text) == (200, "secure api.partner.example")
        for method, path, host in (("GET", "/v1/orders", "elsewhere.egress"), ("DELETE", "/v1/orders", "partner.egress"),
                                   ("GET", "/v2", "partner.egress")):  # fmt: skip
            answer = client.request(method, path, headers={"host": host})
            assert (answer.status_code, answer.text) == (403, "this destination is not on the list\n")
    assert len(proxy.asked) == 1
    assert "basic chjvehk6ahvudgvymg==" in proxy.asked[0].lower()
    running.wait_log("destination=elsewhere.egress")
    proxy.stop()


def test_agents_reach_the_internet_and_nothing_inside(start: Start, service: StandIn) -> None:
    running = start("forward-proxy", INSIDE="127.0.0.1/32")
    agent = f"http://agent:agent-password@127.0.0.1:{running.port}"
    url = f"http://{place(service)}"
    with httpx.Client(proxy=agent, timeout=60) as client:
        assert client.get(f"{url}/a").status_code == 200
        refused = client.get("http://169.254.169.254/latest/meta-data/")
        assert (refused.status_code, refused.text) == (403, "destination not allowed")
    assert "proxy-authorization" not in service.last.headers
    with httpx.Client(proxy=agent.replace("agent-password", "guessed"), timeout=60) as client:
        assert client.get(url).status_code == 407
    tunnel = ["curl", "-s", "--max-time", "60", "--proxytunnel", "--proxy", agent, f"{url}/b"]
    assert subprocess.run(tunnel, capture_output=True, text=True, check=True).stdout == '{"fine": true}'
    running.wait_log("http.method=CONNECT")


def test_services_get_tokens_that_the_gateway_signs(start: Start, service: StandIn, tmp_path: Path) -> None:
    keys = StandIn(whole(JWKS.encode()))
    running = start("jwt-signing", SERVICE=place(service), JWKS_URL=f"http://{place(keys)}/jwks.json")
    of_client = token()
    assert httpx.get(running.url, timeout=60).status_code == 401
    assert httpx.get(running.url, headers={"authorization": f"Bearer {of_client}"}, timeout=60).status_code == 200
    kind, _, signed = service.last.headers["authorization"].partition(" ")
    assert (kind, signed != of_client) == ("Bearer", True)
    key = jwt.algorithms.ECAlgorithm(jwt.algorithms.ECAlgorithm.SHA256).prepare_key((tmp_path / "certs/server.key").read_bytes())
    claims = jwt.decode(signed, key.public_key(), ["ES256"], audience="orders", issuer="https://gateway.test")  # type: ignore[union-attr]
    assert (claims["sub"], jwt.get_unverified_header(signed)["kid"]) == ("gateway", "gateway-1")
    assert claims["exp"] - time.time() <= 60
    assert service.last.headers["x-user"] == "ada"
    keys.close()


def test_browsers_log_in(start: Start, service: StandIn) -> None:
    provider = FakeProvider("headgate")
    provider.claims = {"email": "ada@example.com"}
    running = start("oidc", SERVICE=place(service), OIDC_ISSUER=provider.issuer, OIDC_CLIENT_SECRET="s", PUBLIC_URL="http://gate.test",
                    **ENVIRONMENT)  # fmt: skip
    assert httpx.get(f"{running.url}/healthz", timeout=60).text == "ok\n"
    assert httpx.get(running.url, headers={"x-user": "mallory"}, timeout=60).status_code == 302
    assert service.seen == []
    for email, status in (("ada@example.com", 200), ("eve@elsewhere.com", 403)):
        provider.claims = {"email": email}
        with Browser() as browser:
            code, query = provider.authorize(browser.begin(running).headers["location"])
            assert query["redirect_uri"] == "http://gate.test/login/done"
            back = browser.get(f"{running.url}/login/done", params={"code": code, "state": query["state"]})
            assert back.status_code == 302, back.text
            assert browser.get(running.url).status_code == status
    assert [one.headers["x-user"] for one in service.seen] == ["ada@example.com"]
    provider.close()


def test_tokens_are_exchanged(start: Start, service: StandIn) -> None:
    keys = StandIn(whole(JWKS.encode()))
    server = StandIn(whole({"access_token": "narrow", "token_type": "Bearer", "expires_in": 600,
                            "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}))  # fmt: skip
    running = start("token-exchange", SERVICE=place(service), TOKEN_SERVER=place(server), EXCHANGE_SECRET="s3",
                    JWKS_URL=f"http://{place(keys)}/jwks.json")  # fmt: skip
    wide = token()
    for _ in range(2):
        assert httpx.get(running.url, headers={"authorization": f"Bearer {wide}"}, timeout=60).status_code == 200
        assert service.last.headers["authorization"] == "Bearer narrow"
    (exchange,) = server.seen
    form = httpx.QueryParams(exchange.body.decode())
    assert (exchange.path, form["subject_token"], form["audience"], form["scope"]) == ("/oauth/token", wide, "orders", "orders.read")
    assert httpx.get(running.url, timeout=60).status_code == 401
    assert httpx.get(running.url, headers={"authorization": f"Bearer {token(aud='other')}"}, timeout=60).status_code == 401
    for one in (keys, server):
        one.close()


def test_models_are_chosen_by_what_a_question_is_worth(start: Start) -> None:
    provider = StandIn(whole(chat("Hello.")))
    running = start("cost-routing", OPENAI_API_KEY="sk-1", OPENAI_URL=f"http://{place(provider)}/v1")
    client = openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0)
    tool: Any = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    short: list[Any] = [{"role": "user", "content": "Hi"}]
    for model, options in (
        ("gpt-5-mini", {"messages": short}),
        ("gpt-5", {"messages": short, "extra_headers": {"x-quality": "high"}}),
        ("gpt-5", {"messages": short, "tools": [tool]}),
        ("gpt-5", {"messages": short * 11}),
    ):
        answer = client.chat.completions.with_raw_response.create(model="auto", **options)  # type: ignore[call-overload]
        assert provider.last.json["model"] == model
        assert provider.last.headers["authorization"] == "Bearer sk-1"
        usage = answer.parse().usage
        rates = {"gpt-5-mini": (0.25, 2.0), "gpt-5": (1.25, 10.0)}[model]
        cost = (usage.prompt_tokens * rates[0] + usage.completion_tokens * rates[1]) / 1e6
        assert float(answer.headers["x-cost-usd"]) == pytest.approx(cost)
    running.wait_log("cost_usd=")
    provider.close()


def test_prompts_and_answers_are_guarded(start: Start) -> None:
    provider, guard = StandIn(whole(chat("Write to ada@example.com."))), StandIn(whole({"action": {"reason": "fine"}}))
    running = start("prompt-guards", OPENAI_API_KEY="sk-1", OPENAI_URL=f"http://{place(provider)}/v1", GUARD=place(guard))
    client = openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0)

    def ask(text: str) -> str | None:
        found = client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
        return found.choices[0].message.content

    assert ask("My card is 4111 1111 1111 1111.") == "Write to <EMAIL_ADDRESS>."
    assert provider.last.json["messages"] == [{"role": "user", "content": "My card is <CREDIT_CARD>."}]
    assert guard.last.json == {"body": {"messages": [{"role": "user", "content": "My card is <CREDIT_CARD>."}]}}
    with pytest.raises(openai.UnprocessableEntityError, match="not for models"):
        ask("What is Project Kestrel?")
    guard.answers = [whole({"action": {"body": "not today", "status_code": 403}})]
    with pytest.raises(openai.PermissionDeniedError) as refused:
        ask("Hi")
    assert refused.value.response.text == "not today"
    guard.answers = [whole({}, 500)]
    assert ask("Hi") == "Write to <EMAIL_ADDRESS>."       # failOpen
    for one in (provider, guard):
        one.close()


def test_mcp_over_tls_on_both_sides(start: Start, tmp_path: Path) -> None:
    inner = start("openapi", PETS="127.0.0.1:1", PETS_KEY="k")
    outer_keys = tmp_path / "certs"
    # The first gateway is the server behind TLS: it gets a listener with a certificate of the example's authority.
    text = inner.path.read_text().replace(
        f"port: {inner.port}", f"port: {inner.port}\n    tls: {{cert: {outer_keys}/server.crt, key: {outer_keys}/server.key}}"
    )
    inner.put(text)
    inner.wait_log("configuration reloaded")
    running = start("mcp-tls", MCP_SERVER=f"https://127.0.0.1:{inner.port}/mcp", MCP_NAME="localhost")

    async def tools() -> list[str]:
        ssl_context = ssl.create_default_context(cafile=str(outer_keys / "ca.pem"))
        async with (
            httpx.AsyncClient(verify=ssl_context, timeout=60) as http,
            streamable_http_client(f"https://localhost:{running.port}/mcp", http_client=http) as (read, write, *_),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            return [tool.name for tool in (await session.list_tools()).tools]

    assert asyncio.run(tools()) == ["list_pets", "add_pet"]


def test_tls_is_passed_on_or_ended(start: Start, service: StandIn, tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "other.pem")
    behind = tls_upstream(authority, "a.passed.test")
    running = start("tcp", TLS_BACKEND=f"127.0.0.1:{behind}", BACKEND=place(service), SPARE=place(service))

    def get(host: str, trusted: str) -> str:
        context = ssl.create_default_context(cafile=str(folder / trusted))
        with httpx.Client(verify=context, timeout=60) as client:
            # The address is this machine's, whatever the name in the handshake is.
            url = f"https://127.0.0.1:{running.port}/"
            return client.get(url, headers={"host": host}, extensions={"sni_hostname": host}).text

    assert get("a.passed.test", "other.pem") == "secure a.passed.test"
    assert "fine" in get("localhost", "ca.pem")


def test_operations_are_tools(start: Start, service: StandIn) -> None:
    service.answers = [whole([{"name": "Tom"}])]
    raw = Raw(start("openapi", PETS=place(service), PETS_KEY="pk"))
    assert raw.names("tools/list", "tools") == ["list_pets", "add_pet"]
    assert "Tom" in raw.text("list_pets", query={"kind": "cat"})
    assert (service.last.path, service.last.headers["authorization"]) == ("/pets?kind=cat", "Bearer pk")
    raw.text("add_pet", body={"name": "Rex", "kind": "dog"})
    assert (service.last.method, service.last.json) == ("POST", {"name": "Rex", "kind": "dog"})
    asked = len(service.seen)
    assert "error" in raw.ask("tools/call", name="remove_pet", arguments={"path": {"id": 1}})
    assert len(service.seen) == asked


def test_what_is_told_of_requests(start: Start, service: StandIn) -> None:
    running = start("telemetry", SERVICE=place(service), LOG_SHARE="0.0")
    headers = {"x-team": "red", "x-session": "CANARY", "user-agent": "ua/1"}
    assert httpx.get(running.url + "/passes", headers=headers, timeout=60).status_code == 200
    service.answers = [whole({}, 500)]
    assert httpx.get(running.url + "/fails", headers=headers, timeout=60).status_code == 500
    running.wait_log("/fails")
    (line,) = [json.loads(line) for line in running.log().splitlines() if '"/fails"' in line]
    fields = line.get("fields", line)
    assert (fields["team"], fields["agent"], fields["headers.x-team"]) == ("red", "ua/1", "red")
    assert fields["headers.x-session"] == "<redacted>"
    assert "src.addr" not in fields
    assert "/passes" not in running.log()
    assert "CANARY" not in running.log()
    running.wait_metric("gw_requests_total{", 2)
    _, page = running.fetch(f"http://127.0.0.1:{running.stats}/metrics")
    assert 'team="red"' in page


def test_a_service_authorizes(start: Start, service: StandIn) -> None:
    with serving_authorizer() as authorizer:
        running = start("ext-authz", AUTHORIZER=f"127.0.0.1:{authorizer.port}", SERVICE=place(service))
        authorizer.fields = [("x-user", "ann")]
        for _ in range(2):
            answer = httpx.get(running.url + "/p", headers={"authorization": "Bearer t", "x-user": "evil"}, timeout=60)
            assert answer.status_code == 200
        assert service.last.headers["x-user"] == "ann"
        assert [(asked.target, asked.fields["authorization"]) for asked in authorizer.seen] == [("/check/p", "Bearer t")]
        authorizer.status, authorizer.body = 401, b"log in first"
        answer = httpx.get(running.url + "/p", timeout=60)
        assert (answer.status_code, answer.text) == (401, "log in first")


def test_an_endpoint_picker_chooses_the_model_server(start: Start) -> None:
    picker, server = ProcessorPeer(), BodyBackend()
    try:
        picker.react = picking(f"127.0.0.1:{free_port()}", f"127.0.0.1:{server.port}")
        running = start("llm-standalone-epp", MODEL_SERVER="127.0.0.1:1", ENDPOINT_PICKER=f"127.0.0.1:{picker.port}")
        answer = httpx.post(running.url + "/v1/chat/completions", json={"model": "base"}, timeout=60)
        assert (answer.status_code, answer.text) == (200, "from the backend")
        assert json.loads(server.seen[0].body) == {"model": "base-lora"}
        assert picker.parts == ["request_headers", "request_body", "response_headers", "response_body"]
    finally:
        picker.stop()
        server.stop()
