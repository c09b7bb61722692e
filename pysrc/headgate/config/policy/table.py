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


class Kind(NamedTuple):
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
KINDS: Final[tuple[Kind, ...]] = (
    Kind("timeout", "timeout", _record(timeout.parse), timeout.dump),
    Kind("cors", "cors", _record(cors.parse), cors.dump, gateway=True),
    Kind("oidc", "oidc", _record(oidc.parse), oidc.dump, gateway=True),
    Kind("jwtAuth", "jwt", _record(identity.parse_jwt), identity.dump_jwt, gateway=True),
    Kind("mcpAuthentication", "mcp_auth", _record(mcp_authentication.parse), mcp_authentication.dump),
    Kind("basicAuth", "basic", _record(identity.parse_basic), identity.dump_basic, gateway=True),
    Kind("apiKey", "api_key", _record(identity.parse_api_key), identity.dump_api_key, gateway=True),
    Kind(
        "authorization",
        "authorization",
        _record(authorization.parse),
        authorization.dump,
        gateway=True,
        accumulate=True,
    ),
    Kind("localRateLimit", "local_rate_limits", local_rate_limit.parse, local_rate_limit.dump),
    Kind("buffer", "buffer", _record(buffer.parse), buffer.dump),
    Kind("transformations", "transformations", _record(transformation.parse), transformation.dump, gateway=True),
    Kind("csrf", "csrf", _record(csrf.parse), csrf.dump),
    Kind("requestHeaderModifier", "request_headers", _record(headers.parse_request), headers.dump),
    Kind("urlRewrite", "rewrite", _record(rewrite.parse_rewrite), rewrite.dump),
    Kind("requestRedirect", "redirect", _record(rewrite.parse_redirect), rewrite.dump),
    Kind("delay", "delay", _record(delay.parse), delay.dump),
    Kind("requestMirror", "mirror", _record(mirror.parse), mirror.dump),
    Kind("directResponse", "direct_response", _record(direct_response.parse), direct_response.dump),
    Kind("retry", "retry", _record(retry.parse), retry.dump),
    Kind("responseHeaderModifier", "response_headers", _record(headers.parse_response), headers.dump),
)
GATEWAY_KINDS: Final = tuple(kind for kind in KINDS if kind.gateway)
BY_FIELD: Final = {kind.field: kind for kind in KINDS}


def read(context: Context, holder: Record, owner: str, kinds: tuple[Kind, ...] = KINDS) -> dict[str, Any]:
    """Return the policies among the entries of a map, by field; `owner` is the identity of the level."""
    found = {kind.field: kind.parse(context, holder, kind.key, owner) for kind in kinds if kind.key in holder}
    return {field: value for field, value in found.items() if value is not None}


def show(policies: Any, kinds: tuple[Kind, ...] = KINDS) -> list[dict[str, Any]]:
    """Return the policies that are set as the dump prints them: one map each."""
    found = ((kind, getattr(policies, kind.field)) for kind in kinds)
    return [{kind.key: kind.dump(value)} for kind, value in found if value not in (None, ())]
