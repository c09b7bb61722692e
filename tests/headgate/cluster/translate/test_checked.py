"""What the loader says of parts by themselves."""

from __future__ import annotations

import pytest

from headgate.cluster.translate.checked import faults_of_backend, faults_of_call, faults_of_policy, faults_of_route


def test_a_policy_that_the_loader_takes_has_no_fault() -> None:
    assert faults_of_policy("timeout", {"requestTimeout": "3s"}) == ()
    assert faults_of_policy("extAuthz", {"service": {"name": "a/b", "port": 1}, "protocol": {"grpc": {}}}) == ()


def test_faults_are_said_without_the_place_in_the_file() -> None:
    assert faults_of_policy("authorization", {"rules": [{"allow": "1 +"}]}) == ("authorization.rules[0].allow: 1:4: the expression ends too early",)
    (told,) = faults_of_backend({"name": "shop/x", "host": "a.test:80", "policies": {"health": {"unhealthyExpression": "1 +"}}})
    assert told == "policies.health.unhealthyExpression: 1:4: the expression ends too early"
    assert faults_of_backend({"dynamic": {"target": "1 +"}})[0].endswith("the expression ends too early")


def test_parts_that_do_not_go_together_are_found() -> None:
    mirrored = {"policies": {"requestMirror": {"backend": {"backend": "shop/x"}, "percentage": 0.5}}, "backends": [{"host": "a.test:80"}]}
    assert faults_of_route(mirrored, [{"name": "shop/x", "host": "a.test:80"}]) == ()
    (told,) = faults_of_route(mirrored, [{"name": "shop/x", "ai": {"name": "p", "provider": {"openAI": {}}}}])
    assert "backend type cannot be used in mirror" in told


def test_no_variable_of_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIDDEN", "1 +")
    # A dollar sign is one in an expression: a wrong one there, whatever the variable says.
    assert "ends too early" not in faults_of_policy("authorization", {"rules": [{"allow": "$HIDDEN"}]})[0]
    assert faults_of_policy("requestHeaderModifier", {"set": {"a": "${NONE}"}}) == ()


def test_an_identity_of_spiffe_is_taken_wherever_its_socket_is() -> None:
    assert faults_of_call("backendTLS", {"spiffe": {}}) == ()
