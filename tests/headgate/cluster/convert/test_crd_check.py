"""What the definitions of our kinds refuse, without an API server."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from resource_cases import BASES

from headgate.cluster.convert.crd_check import unfit
from headgate.cluster.resources.kinds import KINDS


def document(kind: str, spec: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"namespace": "shop", "name": "cart"}, "spec": spec}


@pytest.mark.parametrize("kind", [one.name for one in KINDS])
def test_what_the_schema_takes_fits(kind: str) -> None:
    schema = next(one.spec for one in KINDS if one.name == kind)
    for spec in [one for one in BASES.values() if isinstance(one, dict)]:
        taken = jsonschema.Draft7Validator(schema).is_valid(spec)
        assert taken == (list(unfit([document(kind, spec)])) == []) or "x-kubernetes-int-or-string" in str(schema)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"static": {"host": "", "port": 80}}, "spec.static.host has 0 entries or characters, where 1..256 are allowed"),
        ({"static": {"host": "a", "port": 0}}, "spec.static.port must be 1..65535"),
        ({"static": {"host": "a", "port": "80"}}, "spec.static.port must be of type integer"),
        ({"static": {"host": "a", "port": True}}, "spec.static.port must be of type integer"),
        ({"static": {"unixPath": "a"}}, "spec.static.unixPath must match ^/"),
        ({"static": {"other": 1}}, "spec.static.other there is no such field"),
        ({"a2a": {"host": "a"}}, "spec.a2a port is required"),
        ({"mcp": {"targets": [], "prefixMode": "x"}}, "spec.mcp.prefixMode must be one of Conditional, Always, Never"),
    ],
)
def test_what_it_does_not_take_is_told(spec: Any, why: str) -> None:
    assert why in [fault for _, fault in unfit([document("GatewayBackend", spec)])]


def test_other_kinds_are_not_looked_at() -> None:
    assert list(unfit([document("HTTPRoute", {"anything": 1})])) == []
