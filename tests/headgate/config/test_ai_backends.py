"""`ai` backends of routes: where their requests go, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.ir.gateway import Gateway
from headgate.ir.model import AiBackend, PromptCaching

ONE = "name: a, provider: {openAI: {model: m}}"


def text(ai: str, policies: str = "") -> str:
    more = f", policies: {{{policies}}}" if policies else ""
    return f"gateways: {{g: {{port: 1}}}}\nroutes: [{{gateways: [g], backends: [{{ai: {{{ai}}}{more}}}]}}]"


def backend(gateway: Gateway) -> AiBackend:
    found = gateway.binds[0].listeners[0].routes[0].backends[0].backend
    assert isinstance(found, AiBackend)
    return found


def test_one_provider(loaded: Callable[..., Gateway]) -> None:
    [model] = backend(loaded(text(ONE))).members
    assert (model.provider.kind, model.pinned_model, model.pattern) == ("openai", "m", "*")
    assert model.provider.endpoint.address == "api.openai.com:443"
    assert model.provider.endpoint.tls is not None


def test_groups_in_order_with_their_own_policies(loaded: Callable[..., Gateway]) -> None:
    groups = (
        "groups: [{providers: [{name: a, provider: {openAI: {}}, policies: {backendAuth: {key: k}}}]}, "
        "{providers: [{name: b, provider: {anthropic: {model: c}}}, {name: d, provider: {gemini: {}}}]}]"
    )
    found = backend(loaded(text(groups, "ai: {defaults: {n: 1}, routes: {/x: completions, '*': detect}}")))
    assert [[model.provider.kind for model in group] for group in found.groups] == [
        ["openai"], ["anthropic", "gcp.gemini"],
    ]  # fmt: skip
    assert [model.policies.auth is not None for model in found.members] == [True, False, False]
    assert {model.edits.defaults for model in found.members} == {'{"n": 1}'}
    assert found.routes == (("/x", "completions"), ("*", "detect"))


def test_hosts_of_clouds(loaded: Callable[..., Gateway]) -> None:
    azure = backend(loaded(text("name: a, provider: {azure: {resourceName: r, resourceType: foundry}}"))).members[0]
    assert azure.provider.endpoint.address == "r.services.ai.azure.com:443"
    assert azure.provider.azure is not None
    assert azure.provider.azure.project == "r"
    bedrock = "name: a, provider: {bedrock: {region: eu-west-1}}, policies: {backendAuth: {key: k}}"
    assert backend(loaded(text(bedrock))).members[0].provider.endpoint.address == (
        "bedrock-runtime.eu-west-1.amazonaws.com:443"
    )


TWICE = "{providers: [{name: a, provider: {openAI: {}}}]}"
REFUSED = [
    (f"groups: [{TWICE}, {TWICE}]", "", "provider 'a' is defined twice"),
    ("groups: []", "", "groups"),
    ("groups: [" + ", ".join(TWICE.replace("name: a", f"name: p{n}") for n in range(9)) + "]", "", "groups"),
    ("name: a, provider: {custom: {formats: [{type: completions}]}}", "", "needs 'hostOverride'"),
    ("name: a, provider: {copilot: {token: t}}", "", "token"),
    ("name: a, provider: {bedrock: {region: EU}}, policies: {backendAuth: {key: k}}", "", "a region has"),
    ("name: a, provider: {vertex: {projectId: P_}}", "", "a project has"),
    ("name: a, provider: {vertex: {projectId: p, region: /x}}", "", "a region has"),
    (ONE + ", tokenize: 2", "", "tokenize"),
    (ONE, "ai: {promptGuard: {request: []}}", "0 entries, expected 1..8"),
    (ONE, "ai: {modelAliases: {'a*b': c}}", "model pattern"),
    (ONE, "ai: {transformations: {a: 'b('}}", "transformations.a"),
    (ONE, "ai: {routes: {x: completions}}", "a path suffix must begin with"),
    ("groups: [{providers: [{name: a, provider: {openAI: {}}, policies: {sessionAffinity: {source: 'source.address'}}}]}]", "",
     "sessionAffinity is for the whole backend"),
]


@pytest.mark.parametrize(("ai", "policies", "fault"), REFUSED, ids=[case[2] for case in REFUSED])
def test_backends_that_cannot_work_are_refused(
    ai: str, policies: str, fault: str, faults: Callable[..., list[str]]
) -> None:
    found = faults(text(ai, policies))
    assert len(found) == 1, found
    assert fault in found[0]


def test_policies_of_ai_backends_are_for_them_alone(faults: Callable[..., list[str]]) -> None:
    inline = "gateways: {g: {port: 1}}\nroutes: [{gateways: [g], backends: [{host: 'h:1', policies: {ai: {}}}]}]"
    assert "ai is for AI backends" in faults(inline)[0]
    named = "backends: [{name: n, host: 'h:1', policies: {ai: {}}}]"
    assert "ai is for AI backends" in faults(named)[0]


LEVELS = """
gateways: {g: {port: 1}}
routes:
- name: r
  gateways: [g]
  policies: {ai: {defaults: {a: route}, overrides: {b: route}, promptCaching: {cacheTools: true}, prompts: {append: [{role: user, content: c}]}}}
  backends:
  - ai:
      groups:
      - providers:
        - {name: one, provider: {openAI: {moderation: {}}}, policies: {ai: {overrides: {b: provider}}}}
        - {name: two, provider: {openAI: {moderation: {model: m, policy: {output: {mode: score}}}}}}
    policies: {ai: {defaults: {c: backend}}}
policies:
- name: {name: p, namespace: default}
  target: {gateway: {gatewayName: default, gatewayNamespace: default}}
  policy: {ai: {overrides: {d: gateway}, finalTransformations: {e: "1"}}}
- name: {name: q, namespace: default}
  target: {route: {name: r, namespace: default}}
  policy: {ai: {modelAliases: {x: y}}}
"""


def test_levels_merge_field_by_field(loaded: Callable[..., Gateway]) -> None:
    one, two = backend(loaded(LEVELS)).members
    for model, overrides in ((one, '{"b": "provider"}'), (two, '{"b": "route"}')):
        edits = model.edits
        assert (edits.overrides, edits.defaults) == (overrides, '{"c": "backend"}')
        assert (edits.final, edits.aliases) == ((("e", "1"),), (("x", "y"),))
        assert edits.caching == PromptCaching(tools=True)
        assert edits.enrichment is not None


def test_moderation_is_told_to_openai(loaded: Callable[..., Gateway]) -> None:
    one, two = backend(loaded(LEVELS)).members
    assert one.provider.moderation == '{"model":"omni-moderation-latest"}'
    assert two.provider.moderation == '{"model":"m","policy":{"output":{"mode":"score"}}}'


def test_ai_of_a_route_is_for_ai_backends(faults: Callable[..., list[str]]) -> None:
    route = "gateways: {g: {port: 1}}\nroutes: [{name: r, gateways: [g], policies: {ai: {}}, backends: [{host: 'h:1'}]}]"
    [found] = faults(route)
    assert "ai of the route is only for AI backends" in found
    aimed = """
backends: [{name: n, host: 'h:1'}]
gateways: {g: {port: 1}}
routes: [{gateways: [g], backends: [{backend: n}]}]
policies:
- name: {name: p, namespace: default}
  target: {backend: {backend: {name: n, namespace: ""}}}
  policy: {ai: {overrides: {a: 1}}}
"""
    assert "ai is for AI backends" in faults(aimed)[0]
