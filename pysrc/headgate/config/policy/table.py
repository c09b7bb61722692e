"""The policies of the file: where each is kept in the IR, how it is read, shown and merged.

One row per policy kind. Levels merge kind by kind: the strongest level that sets a kind wins it whole, except
where the row says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from headgate.config import policy
from headgate.config.check import Record
from headgate.config.context import Context

Parse = Callable[[Context, Record, str, str], Any]


class PolicyKind(NamedTuple):
    """`key`: name in the file. `field`: where it is in GatewayPolicies and RoutePolicies. `parse(context,
    holder, key, owner)` reads entry `key` of the map `holder` of the level `owner`; None is "not set".
    `gateway`: may stand in the gateway phase. `accumulate`: levels add up instead of replacing each other.
    """

    key: str
    field: str
    parse: Parse
    dump: Callable[[Any], Any]
    gateway: bool = False
    accumulate: bool = False


def _map(module: str, parse: str = "parse", dump: str = "dump") -> tuple[Parse, Callable[[Any], Any]]:
    """Return how a policy that is one map is read and shown. Its module is loaded for the first one."""

    def read(context: Context, holder: Record, key: str, owner: str) -> Any:
        record = holder.get(key)
        return None if record is None else getattr(getattr(policy, module), parse)(context, record)

    return read, _shown(module, dump)


def _shown(module: str, dump: str = "dump") -> Callable[[Any], Any]:
    return lambda value: getattr(getattr(policy, module), dump)(value)


def _rate_limits(context: Context, holder: Record, key: str, owner: str) -> Any:
    return policy.local_rate_limit.parse(context, holder, key, owner)


def _mirrors(context: Context, holder: Record, key: str, owner: str) -> Any:
    return policy.mirror.parse(context, holder, key)


# In the order in which they run; the dump prints them so.
KINDS: Final[tuple[PolicyKind, ...]] = (
    PolicyKind("timeout", "timeout", *_map("timeout")),
    PolicyKind("cors", "cors", *_map("cors"), gateway=True),
    PolicyKind("oidc", "oidc", *_map("oidc"), gateway=True),
    PolicyKind("jwtAuth", "jwt", *_map("identity", "parse_jwt", "dump_jwt"), gateway=True),
    PolicyKind("mcpAuthentication", "mcp_auth", *_map("mcp_authentication")),
    PolicyKind("basicAuth", "basic", *_map("identity", "parse_basic", "dump_basic"), gateway=True),
    PolicyKind("apiKey", "api_key", *_map("identity", "parse_api_key", "dump_api_key"), gateway=True),
    PolicyKind("extAuthz", "ext_authz", *_map("ext_authz"), gateway=True),
    PolicyKind("authorization", "authorization", *_map("authorization"), gateway=True, accumulate=True),
    PolicyKind("localRateLimit", "local_rate_limits", _rate_limits, _shown("local_rate_limit")),
    PolicyKind("remoteRateLimit", "remote_rate_limit", *_map("remote_rate_limit")),
    PolicyKind("buffer", "buffer", *_map("buffer")),
    PolicyKind("extProc", "ext_proc", *_map("ext_proc"), gateway=True),
    PolicyKind("transformations", "transformations", *_map("transformation"), gateway=True),
    PolicyKind("csrf", "csrf", *_map("csrf")),
    PolicyKind("requestHeaderModifier", "request_headers", *_map("headers", "parse_request")),
    PolicyKind("urlRewrite", "rewrite", *_map("rewrite", "parse_rewrite")),
    PolicyKind("requestRedirect", "redirect", *_map("rewrite", "parse_redirect")),
    PolicyKind("delay", "delay", *_map("delay")),
    PolicyKind("requestMirror", "mirrors", _mirrors, _shown("mirror")),
    PolicyKind("directResponse", "direct_response", *_map("direct_response")),
    PolicyKind("retry", "retry", *_map("retry")),
    PolicyKind("usageHeaders", "usage_headers", *_map("usage_headers")),
    PolicyKind("responseHeaderModifier", "response_headers", *_map("headers", "parse_response")),
)
GATEWAY_KINDS: Final = tuple(kind for kind in KINDS if kind.gateway)
BY_FIELD: Final = {kind.field: kind for kind in KINDS}


def read(context: Context, holder: Record, owner: str, kinds: tuple[PolicyKind, ...] = KINDS) -> dict[str, Any]:
    """Return the policies among the entries of a map, by field; `owner` is the identity of the level."""
    given = holder.values
    found = {kind.field: kind.parse(context, holder, kind.key, owner) for kind in kinds if kind.key in given}
    return {field: value for field, value in found.items() if value is not None}


def show(policies: Any, kinds: tuple[PolicyKind, ...] = KINDS) -> list[dict[str, Any]]:
    """Return the policies that are set as the dump prints them: one map each."""
    found = ((kind, getattr(policies, kind.field)) for kind in kinds)
    return [{kind.key: kind.dump(value)} for kind, value in found if value not in (None, ())]
