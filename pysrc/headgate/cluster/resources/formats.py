"""Fields that many resources have: texts with limits, durations, sizes, references, places of credentials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headgate.cluster.resources.schema import (
    Json,
    default,
    exactly_one,
    integer,
    listed,
    mapped,
    record,
    rule,
    ruled,
    text,
    words,
)
from headgate.cluster.resources.shapes import like, of, words_of
from headgate.config.shape.external import FAIL
from headgate.config.shape.scalars import CEL as CEL_SHAPE
from headgate.config.shape.scalars import PORT as PORT_SHAPE
from headgate.config.shape.upstream import LOCATION
from headgate.document.fields import BYTE_SIZE_PATTERN, HEADER_NAME_PATTERN

GROUP: Final = "headgate.dev"
GATEWAY_GROUP: Final = "gateway.networking.k8s.io"
INFERENCE_GROUP: Final = "inference.networking.k8s.io"

SHORT: Final = text(1, 256)
LONG: Final = text(1, 1_024)
TINY: Final = text(1, 64)
CEL: Final = of(CEL_SHAPE)
PORT: Final = of(PORT_SHAPE)
FAILURE_MODE: Final = words_of(FAIL)

_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME: Final = rf"^{_LABEL}(\.{_LABEL})*$"
OBJECT_NAME: Final = text(1, 253)
NAMESPACE: Final = text(1, 63, rf"^{_LABEL}$")
# A name of a listener, a rule, a provider or an MCP target.
SECTION: Final = text(1, 253, _NAME)
API_GROUP: Final = text(0, 253, rf"^$|{_NAME}")
KIND: Final = text(1, 63, r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$")
# A host name or an address, as a connection is made to it.
HOST: Final = SHORT
PATH: Final = text(1, 1_024, r"^/[^?#\s]*$")
# Of Gateway API's Duration, which is narrower than that of the file.
DURATION_PATTERN: Final = r"^([0-9]{1,5}(h|m|s|ms)){1,4}$"
URL_PATTERN: Final = r"^https?://[^/?#@]+(/[^?#]*)?$"

HEADER_NAME: Final = text(1, 256, HEADER_NAME_PATTERN)
_TOKEN: Final = HEADER_NAME_PATTERN.strip("^$")
PSEUDO_NAME: Final = text(1, 256, rf"^(:(authority|method|path|scheme|status)|{_TOKEN})$")
HEADER_VALUE: Final = text(1, 4_096)
LABEL_VALUE: Final = text(0, 63)
CEL_MAP: Final = mapped(CEL, 64)
STRING_MAP: Final = mapped(text(0, 4_096), 64)
LABELS: Final = mapped(LABEL_VALUE, 64)

_LARGEST: Final = 2**32 - 1
BYTE_SIZE: Final[Json] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "maxLength": 32,
    "pattern": BYTE_SIZE_PATTERN,
    "x-kubernetes-int-or-string": True,
    "x-kubernetes-validations": [
        rule(
            f"type(self) == int ? int(self) >= 1 && int(self) <= {_LARGEST} : isQuantity(string(self)) && "
            "quantity(string(self)).isGreaterThan(quantity('0')) && "
            f"!quantity(string(self)).isGreaterThan(quantity('{_LARGEST}'))",
            f"must be at least 1 and at most {_LARGEST} bytes",
        )
    ],
}


def duration(least: str) -> Json:
    """Return a time of at least `least`, such as `1ms`."""
    longer = rule(f"duration(self) >= duration('{least}')", f"must be at least {least}")
    return ruled(text(1, 32, DURATION_PATTERN), longer)


REQUEST_TIMEOUT: Final = duration("1ms")
CONNECT_TIMEOUT: Final = duration("100ms")
SECONDS: Final = duration("1s")

URL: Final = text(1, 1_024, URL_PATTERN)
URL_WITHOUT_PATH: Final = ruled(URL, rule("!self.matches('^https?://[^/]+/.')", "must not have a path"))

_CORE_SERVICE: Final = "self.group == '' && self.kind == 'Service'"
BACKEND_REF: Final = record(
    {
        "group": default(API_GROUP, ""),
        "kind": default(KIND, "Service"),
        "name": OBJECT_NAME,
        "namespace": NAMESPACE,
        "port": PORT,
    },
    required=("name",),
    rules=(rule(f"!({_CORE_SERVICE}) || has(self.port)", "port is required for a Service"),),
)
LOCAL_BACKEND_REF: Final = {
    **BACKEND_REF,
    "properties": {name: one for name, one in BACKEND_REF["properties"].items() if name != "namespace"},
}
# The port is said beside it.
LOCAL_OBJECT_REF: Final = record(
    {"group": default(API_GROUP, ""), "kind": default(KIND, "Service"), "name": OBJECT_NAME}, required=("name",)
)


def endpoint(*, path: bool) -> dict[str, Json]:
    """Return the fields of a service that is asked: `backendRef` or `url`. `path`: the URL may have one."""
    return {"backendRef": BACKEND_REF, "url": URL if path else URL_WITHOUT_PATH}


ONE_ENDPOINT: Final = exactly_one("backendRef", "url")

_OWN_KIND: Final = rule(
    "!has(self.kind) || self.kind in ['', 'Secret'] ? !has(self.group) || self.group == '' : "
    "has(self.group) && self.group != ''",
    "group and kind must both be set, or neither of them",
)
_SECRET_FIELDS: Final = {
    "name": OBJECT_NAME,
    "group": API_GROUP,
    "kind": {**KIND, "minLength": 0, "pattern": f"^$|{KIND['pattern']}"},
}
SECRET_REF: Final = record(_SECRET_FIELDS, required=("name",), rules=(_OWN_KIND,))
SECRET_KEY_REF: Final = record({**_SECRET_FIELDS, "key": text(1, 253)}, required=("name",), rules=(_OWN_KIND,))
CA_REF: Final = record(
    {"name": OBJECT_NAME, "kind": default(words("ConfigMap", "Secret"), "ConfigMap")}, required=("name",)
)
LABEL_SELECTOR: Final = record({"matchLabels": {**LABELS, "minProperties": 1}}, required=("matchLabels",))

# Where a request has its credential, and where one is put.
READ_LOCATION: Final = like(LOCATION, {"expression": CEL})
WRITE_LOCATION: Final = like(LOCATION, without=("expression",))


def named_values(name: Json, value: Json, most: int, least: int = 0) -> Json:
    """Return a list of `{name, value}` whose names differ."""
    return listed(record({"name": name, "value": value}, required=("name", "value")), least, most, key="name")


def named_expressions(most: int, least: int = 0) -> Json:
    """Return a list of `{name, expression}` whose names differ."""
    item = record({"name": TINY, "expression": CEL}, required=("name", "expression"))
    return listed(item, least, most, key="name")


def conditional(policy: Json, fields: Mapping[str, Json], rules: tuple[Json, ...]) -> Json:
    """Return a policy whose fields stand there or, with conditions, in `conditional`.

    policy: what an entry of the list has. `fields`, `rules`: of the form without conditions.
    """
    entry = record({"condition": CEL, "policy": policy}, required=("policy",))
    last = rule(
        "self.filter(e, !has(e.condition)).size() <= 1 && (self.all(e, has(e.condition)) || "
        "!has(self[self.size() - 1].condition))",
        "at most one entry may have no condition, and it must be the last one",
    )
    alone = rule(
        "!has(self.conditional) || !(" + " || ".join(f"has(self.{name})" for name in fields) + ")",
        "conditional may not be set together with other fields",
    )
    # A rule about fields of the other form does not hold there.
    rest = [rule(f"has(self.conditional) || ({one['rule']})", one["message"]) for one in rules]
    return record({**fields, "conditional": ruled(listed(entry, 1, 16), last)}, rules=(alone, *rest))


def requires(*names: str) -> tuple[Json, ...]:
    """Return rules that fields are there, for the form without conditions of a policy."""
    return tuple(rule(f"has(self.{name})", f"{name} is required") for name in names)


COUNT: Final = integer(1, 2**31 - 1)
