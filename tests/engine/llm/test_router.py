"""Where an LLM request goes."""

from __future__ import annotations

import pytest
from rig import Rig, on_rig

from headgate.backend.llm.format_routes import ProviderPath, native
from headgate_engine.link.backend import HOST
from headgate_engine.link.pool import Pool
from headgate_engine.link.upstream import Http1Upstream
from headgate_engine.llm.backend import LlmBackend
from headgate_engine.llm.router import ModelRouter
from headgate_engine.llm.target import LlmGroup, LlmTarget, ModelEntry
from headgate_engine.plan.plans import BackendPlan, RoutePlan
from headgate_engine.route.table import RouteRule, RouteTable

BODY = b'{"model":"m","query":"q","documents":["a"]}'


def asking(path: bytes) -> bytes:
    return b"POST %s HTTP/1.1\r\nhost: a.test\r\ncontent-length: %d\r\n\r\n%s" % (path, len(BODY), BODY)


@pytest.mark.parametrize(("path", "host"), [(b"/v1/rerank", "other.test"), (b"/v1/embeddings", "own.test")])
@on_rig()
async def test_a_lane_may_lead_to_another_host(rig: Rig, path: bytes, host: str) -> None:
    async def nowhere(_: object) -> None:
        raise AssertionError("the wrong pool")

    wrong = Pool(rig.worker, "x", b"x:80", nowhere, Http1Upstream(rig.worker))
    plan = BackendPlan("provider", "llm", HOST)
    plan.pool = rig.pool if host == "own.test" else wrong
    plan.authority = b"own.test"
    routes = {name: native(name, ProviderPath(head=f"/{name}"), "cohere") for name in ("rerank", "embeddings")}
    routes["rerank"].pool = rig.pool if host == "other.test" else wrong
    routes["rerank"].authority = b"other.test"
    router = ModelRouter(sole_entry=ModelEntry("m", [LlmGroup([LlmTarget(plan, "p", {"": routes})])]))
    rig.backend = BackendPlan("llm", "llm", LlmBackend(router))
    rig.backend.max_body = 1 << 20
    rig.route = RoutePlan("r", "default", "", (rig.backend,), (1,))
    rig.listener.routes = RouteTable([RouteRule(target=rig.route)])
    assert (await rig.ask(asking(path))).status == 200
    [seen] = rig.seen
    assert seen.get("host") == host
