"""The pipeline table is what plans are built from, and agrees with what the loader refuses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from compile_rig import Rig, rig

from headgate.ir.policies import BackendPolicies, GatewayPolicies, RoutePolicies
from headgate.pipeline import phases, steps
from headgate.pipeline.phases import PHASES, RESPONSE, Phase, PhaseEntry, page, request_steps, set_response
from headgate_engine.link.backend import HOST
from headgate_engine.plan.plans import BackendPlan, ListenerPlan, RoutePlan
from headgate_engine.plan.step import PythonStep, Step
from headgate_engine.steps.buffer import ReadBodyStep

__all__ = ["rig"]

# The order that specification and reference ask for: identity before rules, rules before limits, limits before anything is
# read or changed, answers of the gateway's own last. Written here once more on purpose: who moves a row has to come by.
ORDER = {
    "gateway": [
        "cors", "oidc", "jwtAuth", "basicAuth", "apiKey", "extAuthz", "authorization", "extProc", "transformations",
    ],
    "route": [
        "cors", "oidc", "jwtAuth", "mcpAuthentication", "basicAuth", "apiKey", "extAuthz", "authorization",
        "localRateLimit", "remoteRateLimit", "buffer", "extProc", "transformations", "csrf", "requestHeaderModifier",
        "urlRewrite", "requestRedirect", "delay", "directResponse", "requestMirror",
    ],
    "backend": [
        "inferenceRouting", "authorization", "extAuthz", "backendAuth", "transformations", "requestHeaderModifier",
        "requestRedirect", "a2a",
    ],
    "provider": [
        "guardrails and prompt enrichment", "tokenize", "limits of virtual keys", "remoteRateLimit by tokens", "credential of the client",
        "the backend phase, with the model's policies", "key of the provider", "translation of a long body",
    ],
    "departure": ["signature"],
}  # fmt: skip


def everything(phase: Phase) -> SimpleNamespace:
    """Return policies of which every field of a phase says something."""
    return SimpleNamespace(**{entry.field: entry.policy for entry in phase.entries if entry.field})


def marked(entry: PhaseEntry) -> PhaseEntry:
    """Return a row whose only step has the name of its policy."""
    if entry.steps is None:
        return entry
    return entry._replace(steps=lambda value, env, phase: [PythonStep(entry.policy, lambda ctx: None)])


def order(phase: Phase, patch: pytest.MonkeyPatch) -> list[str]:
    """Return which policies a plan runs, in order, when its table is `phase`."""
    made = phase._replace(entries=tuple(marked(entry) for entry in phase.entries))
    patch.setattr(phases, "_STEPS", phases._rows(tuple(made if one.name == phase.name else one for one in PHASES)))
    patch.setattr(steps, "later_reads_body", lambda policies, env: False)
    env = SimpleNamespace(phase="", reads_body=False)
    return [step.name for step in request_steps(phase.name, everything(phase), env)]  # type: ignore[arg-type]


def swaps() -> Iterator[tuple[str, int, int]]:
    """Return neighbours that make steps: phase and places."""
    for phase in PHASES:
        places = [place for place, entry in enumerate(phase.entries) if entry.steps is not None]
        for first, second in zip(places, places[1:], strict=False):
            yield phase.name, first, second


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.name)
def test_steps_run_in_the_order_of_the_table(phase: Phase, monkeypatch: pytest.MonkeyPatch) -> None:
    assert order(phase, monkeypatch) == ORDER[phase.name]


@pytest.mark.parametrize(("name", "first", "second"), list(swaps()))
def test_the_order_is_nowhere_else(name: str, first: int, second: int, monkeypatch: pytest.MonkeyPatch) -> None:
    phase = next(one for one in PHASES if one.name == name)
    rows = list(phase.entries)
    rows[first], rows[second] = rows[second], rows[first]
    expected = [entry.policy for entry in rows if entry.steps is not None]
    assert order(phase._replace(entries=tuple(rows)), monkeypatch) == expected
    assert expected != ORDER[name], "two rows have changed places, and nobody has seen it"


ROUTE = """
routes:
- name: a
  policies:
    directResponse: {status: 200, body: ok}
    delay: {duration: 1ms}
    urlRewrite: {path: {prefix: /b}}
    requestHeaderModifier: {set: {x: y}}
    csrf: {}
    transformations: {request: {set: {y: "'z'"}}}
    buffer: {request: {maxBytes: 100}}
    localRateLimit: [{maxTokens: 1, tokensPerFill: 1, fillInterval: 1s}]
    authorization: {rules: ["true"]}
    apiKey: {keys: [{key: k}]}
    basicAuth: {htpasswd: "a:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M="}
    cors: {allowOrigins: ["*"]}
"""


def test_the_steps_of_a_real_route_stand_in_that_order(rig: Rig) -> None:
    running = rig.run(ROUTE)
    (listener,) = running.listeners.values()
    (route,) = listener.routes.values()
    names = [step.name for step in route.plan.request_steps]
    assert [name for name in ORDER["route"] if name in names] == names
    assert len(names) >= 11


READING = """
frontendPolicies: {http: {maxBufferSize: 77}}
routes:
- name: a
  policies: {%s}
  backends: [{host: "127.0.0.1:1", policies: {%s}}]
"""
# Policies of a route and of its backend, and the steps of both phases.
READERS = [
    ("authorization: {rules: ['request.path == \"/\"']}", "", ["authorization"], []),
    ("authorization: {rules: ['request.body == b\"\"']}", "", ["requestBody", "authorization"], []),
    ("apiKey: {keys: [{key: k}], location: {expression: 'string(request.bodyPrefix)'}}, csrf: {}", "",
     ["requestBody", "apiKey", "csrf"], []),
    ("csrf: {}, delay: {duration: 'request.body == b\"\" ? 1 : 2'}", "", ["csrf", "requestBody", "delay"], []),
    ("csrf: {}, transformations: {response: {set: {a: 'string(request.body)'}}}", "", ["csrf", "requestBody"], []),
    ("retry: {attempts: 1, codes: [503], condition: 'request.body == b\"\"'}", "", ["requestBody"], []),
    ("retry: {attempts: 1, codes: [503], precondition: 'request.body == b\"\"'}", "", ["requestBody"], []),
    ("", "authorization: {rules: ['request.body == b\"\"']}", [], ["requestBody", "authorization"]),
    ("", "health: {unhealthyExpression: 'request.body == b\"\"'}", [], ["requestBody"]),
    ("", "sessionAffinity: {source: 'string(request.body)'}", [], ["requestBody"]),
]


@pytest.mark.parametrize(("route", "backend", "early", "late"), READERS)
def test_a_policy_that_reads_the_body_gets_it(
    route: str, backend: str, early: list[str], late: list[str], rig: Rig
) -> None:
    (listener,) = rig.run(READING % (route, backend)).listeners.values()
    (found,) = listener.routes.values()
    made = [*found.plan.request_steps, *found.plan.backends[0].request_steps]
    assert [step.name for step in found.plan.request_steps if step.name != "transformations"] == early
    assert [step.name for step in found.plan.backends[0].request_steps] == late
    assert all(step.max_bytes == 77 for step in made if isinstance(step, ReadBodyStep))


def test_the_limit_is_that_of_the_route(rig: Rig) -> None:
    policies = "buffer: {request: {maxBytes: 9}}, delay: {duration: 'request.body == b\"\" ? 1 : 2'}"
    (listener,) = rig.run(READING % (policies, "")).listeners.values()
    (found,) = listener.routes.values()
    assert [step.max_bytes for step in found.plan.request_steps if isinstance(step, ReadBodyStep)] == [9]


def slots(plan: ListenerPlan | RoutePlan | BackendPlan) -> list[tuple[str, list[str]]]:
    return [(name, [step.name for step in getattr(plan, name)]) for name in ("response_steps", "response_transforms")]


@contextmanager
def marked_responses(patch: pytest.MonkeyPatch) -> Iterator[None]:
    def mark(name: str) -> list[Step]:
        return [PythonStep(name, lambda ctx: None)]

    made = tuple(
        one if one.steps is None else one._replace(steps=lambda value, env, phase, name=one.policy: mark(name))
        for one in RESPONSE
    )
    patch.setattr(phases, "RESPONSE", made)
    yield


def test_each_level_gets_its_response_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = {
        "gateway": (ListenerPlan("l", "g", "n", None), GatewayPolicies()),
        "route": (RoutePlan("r", "n", "", (), ()), RoutePolicies()),
        "backend": (BackendPlan("b", "http", HOST), BackendPolicies()),
    }
    edits = ("response_steps", ["responseHeaderModifier"])
    changes = ("response_transforms", ["transformations"])
    monkeypatch.setattr(phases.steps, "response_hold", lambda policies, env: None)
    with marked_responses(monkeypatch):
        for level, (plan, _) in plans.items():
            policies = SimpleNamespace(response_headers=True, transformations=True, usage_headers=True)
            set_response(plan, level, policies, None)  # type: ignore[arg-type]
    assert slots(plans["gateway"][0]) == [("response_steps", []), changes]
    assert slots(plans["route"][0]) == [("response_steps", ["usageHeaders", "responseHeaderModifier"]), changes]
    assert slots(plans["backend"][0]) == [edits, changes]


def test_no_policy_stands_twice_in_a_phase() -> None:
    for phase in PHASES:
        names = [entry.policy for entry in phase.entries]
        assert len(names) == len(set(names))


def test_every_policy_of_the_table_is_built() -> None:
    assert [entry.policy for phase in PHASES for entry in phase.entries if not entry.built] == []


def test_the_committed_page_of_the_pipeline_is_current() -> None:
    committed = Path(__file__).parents[3] / "docs/pipeline.md"
    assert committed.read_text() == page(), "run: python -m headgate.pipeline.phases > docs/pipeline.md"
