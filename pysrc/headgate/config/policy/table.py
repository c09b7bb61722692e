"""The policies of the file: where each is kept in the IR, how it is read, shown and merged.

One row per policy kind. Levels merge kind by kind: the strongest level that sets a kind wins it whole, except
where the row says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy import (
    authorization,
    buffer,
    cors,
    csrf,
    delay,
    direct_response,
    ext_authz,
    headers,
    identity,
    local_rate_limit,
    mcp_authentication,
    mirror,
    oidc,
    retry,
    rewrite,
    timeout,
    transformation,
)

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


def _record(parse: Callable[[Context, Record], Any]) -> Parse:
    """Return the reader of a policy that is one map."""

    def read(context: Context, holder: Record, key: str, owner: str) -> Any:
        record = holder.get(key)
        return None if record is None else parse(context, record)

    return read


# In the order in which they run; the dump prints them so.
KINDS: Final[tuple[PolicyKind, ...]] = (
    PolicyKind("timeout", "timeout", _record(timeout.parse), timeout.dump),
    PolicyKind("cors", "cors", _record(cors.parse), cors.dump, gateway=True),
    PolicyKind("oidc", "oidc", _record(oidc.parse), oidc.dump, gateway=True),
    PolicyKind("jwtAuth", "jwt", _record(identity.parse_jwt), identity.dump_jwt, gateway=True),
    PolicyKind("mcpAuthentication", "mcp_auth", _record(mcp_authentication.parse), mcp_authentication.dump),
    PolicyKind("basicAuth", "basic", _record(identity.parse_basic), identity.dump_basic, gateway=True),
    PolicyKind("apiKey", "api_key", _record(identity.parse_api_key), identity.dump_api_key, gateway=True),
    PolicyKind("extAuthz", "ext_authz", _record(ext_authz.parse), ext_authz.dump, gateway=True),
    PolicyKind(
        "authorization",
        "authorization",
        _record(authorization.parse),
        authorization.dump,
        gateway=True,
        accumulate=True,
    ),
    PolicyKind("localRateLimit", "local_rate_limits", local_rate_limit.parse, local_rate_limit.dump),
    PolicyKind("buffer", "buffer", _record(buffer.parse), buffer.dump),
    PolicyKind("transformations", "transformations", _record(transformation.parse), transformation.dump, gateway=True),
    PolicyKind("csrf", "csrf", _record(csrf.parse), csrf.dump),
    PolicyKind("requestHeaderModifier", "request_headers", _record(headers.parse_request), headers.dump),
    PolicyKind("urlRewrite", "rewrite", _record(rewrite.parse_rewrite), rewrite.dump),
    PolicyKind("requestRedirect", "redirect", _record(rewrite.parse_redirect), rewrite.dump),
    PolicyKind("delay", "delay", _record(delay.parse), delay.dump),
    PolicyKind("requestMirror", "mirror", _record(mirror.parse), mirror.dump),
    PolicyKind("directResponse", "direct_response", _record(direct_response.parse), direct_response.dump),
    PolicyKind("retry", "retry", _record(retry.parse), retry.dump),
    PolicyKind("responseHeaderModifier", "response_headers", _record(headers.parse_response), headers.dump),
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
