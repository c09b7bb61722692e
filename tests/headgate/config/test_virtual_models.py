"""Names that stand for other models."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.ir.gateway import Gateway
from headgate.ir.match import ValueMatch
from headgate.ir.model import LlmRouter
from headgate.ir.policy.authorization import Authorization

MODELS = "models: [{name: 'a*', provider: openai}, {name: ab, provider: openai, params: {model: pin}, visibility: internal}]"


def text(name: str, routing: str) -> str:
    return f"llm: {{{MODELS}, virtualModels: [{{name: '{name}', routing: {{{routing}}}}}]}}"


def test_targets_are_the_most_specific_models_with_their_names_pinned(loaded: Callable[..., Gateway]) -> None:
    gateway = loaded(text("v", "failover: {targets: [{model: ax, priority: 2}, {model: ab, priority: 1}]}"))
    router = gateway.binds[0].listeners[0].routes[0].backends[0].backend
    assert isinstance(router, LlmRouter)
    [virtual] = router.virtual_models
    assert virtual.kind == "failover"
    assert [(one.model.pattern, one.model.pinned_model, one.priority) for one in virtual.targets] == [
        ("a*", "ax", 2), ("ab", "pin", 1),
    ]  # fmt: skip


CHOOSY = """
llm:
  models:
  - {name: a, id: one, provider: openai, matches: [{headers: [{name: X-T, value: {exact: "1"}}]}]}
  - {name: a, id: two, provider: openai, authorization: {rules: [{deny: 'request.method == "GET"'}]}}
  - {name: a, id: three, provider: openai, passthrough: detect}
  - {name: a, id: never, provider: openai}
  virtualModels:
  - {name: v, routing: {KIND: {targets: [{model: a MORE}]}}}
"""


def test_a_target_is_the_first_model_that_the_request_fits(loaded: Callable[..., Gateway]) -> None:
    gateway = loaded(CHOOSY.replace("KIND", "weighted").replace("MORE", ""))
    router = gateway.binds[0].listeners[0].routes[0].backends[0].backend
    assert isinstance(router, LlmRouter)
    [target] = router.virtual_models[0].targets
    # Behind one that takes everything there is no other choice.
    assert [one.key for one in (target.model, *target.others)] == ["llm:model:one", "llm:model:two", "llm:model:three"]
    assert target.model.matches == ((ValueMatch(name="x-t", kind="exact", value="1"),),)
    assert target.others[0].rules == Authorization(deny=('request.method == "GET"',))
    assert target.others[1].rest == "detect"


def test_a_target_of_failover_may_have_matches_too(loaded: Callable[..., Gateway]) -> None:
    gateway = loaded(CHOOSY.replace("KIND", "failover").replace("MORE", ", priority: 1"))
    router = gateway.binds[0].listeners[0].routes[0].backends[0].backend
    assert isinstance(router, LlmRouter)
    [target] = router.virtual_models[0].targets
    assert [len(one.matches) for one in (target.model, *target.others)] == [1, 0, 0]


REFUSED = [
    ("v", "weighted: {targets: [{model: x}]}", "no model of llm.models fits 'x'"),
    ("v", "weighted: {targets: []}", "at least one target"),
    ("v", "weighted: {targets: [{model: ab, weight: 0}]}", "one target needs a weight"),
    ("v", "conditional: {targets: [{model: ab}, {model: ab, when: 'true'}]}", "only the last target"),
    ("v", "conditional: {targets: [{model: ab, when: 'nope.x'}]}", "targets[0].when"),
    ("v*", "weighted: {targets: [{model: ab}]}", "a name without *"),
    ("v", "", "one of weighted, failover, conditional"),
    ("v", "weighted: {targets: [{model: ab}]}, failover: {targets: [{model: ab, priority: 1}]}", "weighted"),
    (
        "v",
        "failover: {targets: [" + ", ".join(f"{{model: ab, priority: {n}}}" for n in range(9)) + "]}",
        "at most 8 priorities",
    ),
]


@pytest.mark.parametrize(("name", "routing", "fault"), REFUSED, ids=[case[2] for case in REFUSED])
def test_virtual_models_that_cannot_work_are_refused(
    name: str, routing: str, fault: str, faults: Callable[..., list[str]]
) -> None:
    found = faults(text(name, routing))
    assert len(found) == 1, found
    assert fault in found[0]
