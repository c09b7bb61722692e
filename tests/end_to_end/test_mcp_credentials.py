"""No credential of a client reaches an MCP target unless `passthrough` says so: over every transport, with every way in and
every kind of credential out.
"""

from __future__ import annotations

import concurrent.futures
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.end_to_end.federation_rig import SAMPLE
from tests.end_to_end.mcp_credentials_rig import (
    INBOUND,
    OUTBOUND,
    TAKEN,
    TOKEN,
    TRANSPORTS,
    allowed,
    jwt_auth,
    recorder,  # noqa: F401
    target_of,
    use,
)
from tests.end_to_end.recorder import Recorder

pytestmark = pytest.mark.warm

















def cases() -> Iterator[tuple[str, str, str, str]]:
    for way in INBOUND:
        for out in OUTBOUND:
            for transport in TRANSPORTS:
                yield f"{way}.{out}.{transport}", way, out, transport










def test_credentials_of_clients_stay_here(gateway: Callable[..., Any], recorder: Recorder) -> None:
    routes = []
    for key, way, out, transport in cases():
        auth = OUTBOUND[out][0]
        mcp: dict[str, Any] = {"targets": [target_of(transport, key, recorder, {"backendAuth": auth} if auth else {})]}
        if transport != "plain":
            mcp["prefixMode"] = "always"
        routes.append({
            "matches": [{"path": {"pathPrefix": f"/{key}/"}}],
            "policies": INBOUND[way].policies,
            "backends": [{"mcp": mcp}],
        })  # fmt: skip
    text = "gateways: {default: {port: {port}}}\nroutes: " + json.dumps(routes) + "\n"
    running = gateway(text)

    def used(case: tuple[str, str, str, str]) -> None:
        key, way, _out, transport = case
        use(f"{running.url}/{key}/mcp", INBOUND[way].fields, INBOUND[way].query, "" if transport == "plain" else "t_")

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in pool.map(used, cases()):
            pass
    faults = []
    for key, way, out, _transport in cases():
        seen = list(recorder.seen[key])
        assert any("call" in one.text for one in seen), key
        field = allowed(out, way)
        for one in seen:
            kept = {name: value for name, value in one.fields.items() if name != field}
            text = one._replace(fields=kept).text
            faults += [(key, one) for secret in INBOUND[way].secrets if secret in text]
            if not OUTBOUND[out][1](one) or "Bearer argument" in one.fields.values():
                faults.append((key, one))
        if out == "passthrough" and way in TAKEN:
            faults += [(key, one) for one in seen if one.fields.get("authorization") != f"Bearer {TOKEN}"]
        if out == "passthrough-header" and way in ("jwt", "mcp"):
            faults += [(key, one) for one in seen if one.fields.get("x-up") != TOKEN]
    assert not faults, [fault[0] for fault in faults]


def test_passthrough_holds_where_a_request_is_handed_to_another_worker(
    gateway: Callable[..., Any], recorder: Recorder
) -> None:
    policies = {"backendAuth": {"passthrough": {}}}
    target = json.dumps(target_of("mcp", "relayed", recorder, policies))
    running = gateway(
        f"""
        gateways: {{default: {{port: {{port}}}}}}
        routes:
        - policies: {json.dumps(jwt_auth())}
          backends: [{{mcp: {{targets: [{target}, {{name: local, {SAMPLE}}}]}}}}]
        """,
        workers=2,
    )
    fields = {"authorization": f"Bearer {TOKEN}", "connection": "close"}
    for _ in range(6):
        use(f"{running.url}/mcp", fields, "", "t_")
    assert [one for one in recorder.seen["relayed"] if one.fields.get("authorization") != f"Bearer {TOKEN}"] == []
