"""`backendAuth` to the IR and back."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy import cloud_auth, location, token_exchange
from headgate.crypto.signing import signing_key
from headgate.document.secret import REDACTED
from headgate.errors import Problem
from headgate.ir.policy.backend_auth import BackendAuth, JwtSign, MainAuth, Passthrough
from headgate.ir.policy.cloud_auth import CopilotAuth
from headgate.ir.policy.key_auth import BEARER, KeyAuth
from headgate.ir.policy.location import Location
from headgate.ir.policy.token_exchange import CrossAppAccess, TokenExchange
from headgate.ir.secret import SecretRef

# Where "Bearer <key>" would double a scheme that the key already has.
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9._~+/-]* +\S")
BARE: Final = Location(prefix="")
OWN_CLAIMS: Final = ("iat", "exp", "nbf")
DEFAULT_TTL_S: Final = 300


def bearer(key: SecretRef) -> KeyAuth:
    """Return `Authorization: Bearer <key>`; a key that has a scheme (`Basic ...`) is sent as it is."""
    return KeyAuth(key=key, location=BARE if _SCHEME.match(key.secret.reveal()) else BEARER)


def parse(context: Context, record: Record | str | None) -> BackendAuth | None:
    """Return the credentials of `backendAuth`, None when there are none."""
    if record is None:
        return None
    if not isinstance(record, Record):
        return BackendAuth(main=CopilotAuth())        # the only kind that is a word
    main: MainAuth | None = None
    if record.get("key") is not None:
        main = _key(context, record)
    elif record.get("passthrough") is not None:
        main = Passthrough(location=_target(context, record["passthrough"], BEARER))
    elif record.get("jwtSign") is not None:
        main = _sign(context, record["jwtSign"])
    else:
        main = cloud_auth.parse(context, record) or token_exchange.parse(context, record)
    extra = tuple(one for entry in record.records("credentials") if (one := _extra(context, entry)) is not None)
    return BackendAuth(main=main, extra=extra) if main is not None or extra else None


def _target(context: Context, record: Record, default: Location) -> Location:
    """Return where a credential is put: no expression can say that."""
    written = record.get("location")
    if written is not None and "expression" in written:
        message = "an expression can only read a credential, not set one"
        context.fault(Problem.VALUE, written, "expression", message)
        return default
    return location.parse(context, written, default)


def _key(context: Context, record: Record) -> KeyAuth | None:
    value = record["key"]
    located = isinstance(value, Record) and "value" in value
    key = context.secret(value, "value") if located else context.secret(record, "key")
    if key is None:
        return None
    if located and value.get("location") is not None:
        return KeyAuth(key=key, location=_target(context, value, BEARER))
    return bearer(key)


def _extra(context: Context, record: Record) -> KeyAuth | None:
    key = context.secret(record, "key")
    return None if key is None else KeyAuth(key=key, location=_target(context, record, BEARER))


def _sign(context: Context, record: Record) -> JwtSign | None:
    key = context.secret(record, "signingKey", lines=True)
    if key is None:
        return None
    algorithm = record.get("alg", "RS256")
    try:
        signing_key(key.secret.reveal(), algorithm)
    except ValueError as error:
        context.fault(Problem.VALUE, record, "signingKey", str(error))
    claims = record.get("claims") or {}
    for name in OWN_CLAIMS:
        if name in claims:
            context.fault(Problem.VALUE, record, "claims", f"{name!r} is set by the gateway")
    ttl = record.get("ttl")
    ttl_s = DEFAULT_TTL_S if ttl is None else ttl // 1000
    if ttl_s < 1:
        context.fault(Problem.VALUE, record, "ttl", "a token must be valid for at least 1s")
    return JwtSign(
        key=key,
        algorithm=algorithm,
        kid=record.get("kid"),
        claims=json.dumps(claims, sort_keys=True),
        ttl_s=ttl_s,
        location=_target(context, record, BEARER),
    )


def dump(auth: BackendAuth) -> dict[str, Any] | str:
    """Return the form of the configuration dump."""
    found: dict[str, Any] = {}
    main = auth.main
    if isinstance(main, CopilotAuth):
        return "copilot"        # as a word, it stands alone
    if isinstance(main, KeyAuth):
        found["key"] = {"value": REDACTED, "location": location.dump(main.location)}
    elif isinstance(main, Passthrough):
        found["passthrough"] = {"location": location.dump(main.location)}
    elif isinstance(main, JwtSign):
        found["jwtSign"] = {
            "signingKey": REDACTED,
            "alg": main.algorithm,
            "claims": json.loads(main.claims),
            "ttl": f"{main.ttl_s}s",
            "location": location.dump(main.location),
        } | ({} if main.kid is None else {"kid": main.kid})
    elif isinstance(main, TokenExchange | CrossAppAccess):
        found = token_exchange.dump(main)
    elif main is not None:
        found = cloud_auth.dump(main)
    if auth.extra:
        found["credentials"] = [
            {"key": REDACTED, "location": location.dump(one.location)} for one in auth.extra
        ]
    return found
