"""Settings of the controller."""

from __future__ import annotations

import pytest

from headgate.cluster.controller.settings import ControllerSettings, settings_of
from headgate.cluster.errors import ClusterError


def test_without_variables_all_is_as_documented() -> None:
    assert settings_of({"HEADGATE_IDENTITY": "p"}) == ControllerSettings(identity="p")
    first, second = (settings_of({"POD_NAME": "p"}).identity for _ in range(2))
    assert first.startswith("p_")
    assert first != second
    found = settings_of({}, "own")
    assert (found.namespace, found.health_port, found.metrics_port, found.admin_port) == ("own", 9093, 9092, 9095)


def test_variables_are_read() -> None:
    found = settings_of({
        "POD_NAMESPACE": "pod", "HEADGATE_NAMESPACE": "own", "HEADGATE_DISABLE_LEADER_ELECTION": "true", "HEADGATE_GATEWAY_CLASS_NAME": "",
        "HEADGATE_GATEWAY_CLASS_PARAMETERS_REFS": '{"big": {"name": "p", "namespace": "n"}}', "HEADGATE_HEALTH_PORT": "0",
        "HEADGATE_DISCOVERY_NAMESPACE_SELECTORS": '[{"matchLabels": {"a": "b"}}]', "HEADGATE_LOG_LEVEL": "debug", "HEADGATE_IDENTITY": "me",
        "HEADGATE_ENABLE_INFERENCE": "true", "HEADGATE_GLOBAL_POLICY_NAMESPACE": "ops",
    })  # fmt: skip
    assert (found.namespace, found.election, found.class_name, found.health_port) == ("own", False, "", 0)
    assert found.class_parameters == {"big": {"group": "headgate.dev", "kind": "GatewayParameters", "name": "p", "namespace": "n"}}
    assert found.selectors == ({"matchLabels": {"a": "b"}},)
    assert (found.log_level, found.identity, found.inference, found.global_policies) == ("debug", "me", True, "ops")


@pytest.mark.parametrize(("name", "value", "told"), [
    ("LOG_LEVEL", "loud", "one of off, error, warn, info, debug, trace is expected, found 'loud'"),
    ("DISABLE_LEADER_ELECTION", "yes", "one of true, false is expected"),
    ("HEALTH_PORT", "70000", "a port is expected, found '70000'"),
    ("HEALTH_PORT", "-1", "a port is expected"),
    ("DISCOVERY_NAMESPACE_SELECTORS", "[", "JSON is expected"),
    ("DISCOVERY_NAMESPACE_SELECTORS", '[{"labels": {}}]', "a list of objects with matchExpressions and matchLabels is expected"),
    ("DISCOVERY_NAMESPACE_SELECTORS", '[{"matchExpressions": [{"key": "a"}]}]', "key and operator are expected"),
    ("GATEWAY_CLASS_PARAMETERS_REFS", "[]", "expected an object"),
    ("GATEWAY_CLASS_PARAMETERS_REFS", '{"a": {"namespace": "n"}}', "a: name, and perhaps namespace, group and kind, are expected"),
])  # fmt: skip
def test_what_is_wrong_is_told_with_the_name_of_the_variable(name: str, value: str, told: str) -> None:
    with pytest.raises(ClusterError) as caught:
        settings_of({f"HEADGATE_{name}": value})
    assert f"HEADGATE_{name}: " in str(caught.value)
    assert told in str(caught.value)
