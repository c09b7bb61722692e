"""`jwtAuth`, `apiKey` and `basicAuth` to the IR and back."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Final

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy import document_source, location
from headgate.crypto.htpasswd import parse_htpasswd
from headgate.crypto.jwks import parse_jwks
from headgate.document.secret import REDACTED
from headgate.errors import Problem
from headgate.ir.policy.document_source import DocumentSource
from headgate.ir.policy.identity import (
    BASIC,
    BEARER,
    ApiKey,
    ApiKeyAuth,
    BasicAuth,
    JwtAuth,
    JwtProvider,
)
from headgate_engine.llm.pattern import ModelPattern

CLAIMS: Final = frozenset(("exp", "nbf", "aud", "iss", "sub"))
HASH: Final = re.compile(r"sha256:([0-9a-fA-F]{64})")
MAX_AUDIENCES: Final = 64
NO_KEYS: Final = (
    "there are no virtual keys, and none can be made without config.storage.mode: hybrid and config.database: only "
    "keys of this policy itself are known"
)


def parse_jwt(context: Context, record: Record) -> JwtAuth | None:
    """Return `jwtAuth` in either form."""
    entries = record.records("providers") if "providers" in record else [record]
    providers = [_provider(context, entry) for entry in entries if "issuer" in entry]
    if not providers:
        context.fault(Problem.VALUE, record, "providers", "at least one provider is required")
        return None
    return JwtAuth(
        providers=tuple(one for one in providers if one is not None),
        mode=record.get("mode", "strict"),
        location=location.parse(context, record.get("location"), BEARER),
    )


def _provider(context: Context, record: Record) -> JwtProvider | None:
    audiences = tuple(record.get("audiences") or ())
    if len(audiences) > MAX_AUDIENCES:
        context.fault(Problem.VALUE, record, "audiences", f"more than {MAX_AUDIENCES} audiences")
    required = checked_claims(context, record)
    keys = key_source(context, record, "jwks")
    if keys is None:
        return None
    return JwtProvider(issuer=record["issuer"], keys=keys, audiences=audiences, required=required)


def checked_claims(context: Context, record: Record) -> tuple[str, ...]:
    """Return the claims that a token must have."""
    options = record.get("jwtValidationOptions")
    required = options.get("requiredClaims") if options is not None else None
    found = ("exp",) if required is None else tuple(required)
    for name in found:
        if name not in CLAIMS:
            message = f"{name!r} is none of {', '.join(sorted(CLAIMS))}"
            context.fault(Problem.VALUE, options or record, "requiredClaims", message)
    return found


def key_source(context: Context, record: Record, key: str) -> DocumentSource | None:
    """Return where the key set of entry `key` comes from; a document that is there is checked now."""
    source = document_source.parse(context, record, key)
    if source is None or source.document is None:
        return source
    try:
        keys = parse_jwks(source.document)
        if not keys.keys:
            raise ValueError("; ".join(("there are no usable keys", *keys.skipped)))
    except ValueError as error:
        context.fault(Problem.VALUE, record, key, str(error))
        return None
    context.warnings.extend(f"{record.path}.{key}: {reason}" for reason in keys.skipped)
    return source


def dump_jwt(auth: JwtAuth) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    providers = [
        {
            "issuer": one.issuer,
            "audiences": list(one.audiences),
            "jwks": document_source.dump(one.keys),
            "jwtValidationOptions": {"requiredClaims": list(one.required)},
        }
        for one in auth.providers
    ]
    return {"mode": auth.mode, "location": location.dump(auth.location), "providers": providers}


def parse_api_key(context: Context, record: Record) -> ApiKeyAuth:
    """Return `apiKey`; plain keys are hashed at once."""
    keys: dict[bytes, ApiKey] = {}
    for index, entry in enumerate(record.records("keys")):
        digest = _digest(context, entry)
        metadata = entry.get("metadata")
        if metadata is not None and not isinstance(metadata, dict):
            context.fault(Problem.TYPE, entry, "metadata", "expected a map")
        if digest is None:
            continue
        if digest in keys:
            context.fault(Problem.CONFLICT, entry, "", f"key {index} is defined twice")
        shown = json.dumps(metadata or {}, sort_keys=True)
        keys[digest] = ApiKey(digest=digest, metadata=shown, models=checked_models(context, entry))
    if record.get("virtualKeys") and not context.can_have_keys:
        context.warnings.append(f"{record.path}.virtualKeys: {NO_KEYS}")
    return ApiKeyAuth(
        keys=tuple(keys.values()),
        virtual=record.get("virtualKeys", False),
        mode=record.get("mode", "strict"),
        location=location.parse(context, record.get("location"), BEARER),
    )


def checked_models(context: Context, record: Record) -> tuple[str, ...] | None:
    """Return the patterns of `allowedModels`, None for all models."""
    models = record.get("allowedModels")
    if models is None:
        return None
    for pattern in models:
        try:
            ModelPattern(pattern)
        except ValueError as error:
            context.fault(Problem.VALUE, record, "allowedModels", str(error))
    if "*" in models and len(models) > 1:
        context.fault(Problem.VALUE, record, "allowedModels", "'*' allows all and must be the only entry")
    return tuple(models)


def _digest(context: Context, record: Record) -> bytes | None:
    key, hashed = record.get("key"), record.get("keyHash")
    if key is not None:
        if not key.reveal():
            context.fault(Problem.VALUE, record, "key", "a key cannot be empty")
            return None
        return hashlib.sha256(key.reveal_bytes()).digest()
    if hashed is None:
        return None
    found = HASH.fullmatch(hashed.reveal())
    if found is None:
        context.fault(Problem.VALUE, record, "keyHash", "not sha256: and 64 hexadecimal digits")
        return None
    return bytes.fromhex(found[1])


def dump_api_key(auth: ApiKeyAuth) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    keys: list[dict[str, Any]] = []
    for one in auth.keys:
        keys.append({"keyHash": REDACTED, "metadata": json.loads(one.metadata)})
        if one.models is not None:
            keys[-1]["allowedModels"] = list(one.models)
    found = {"mode": auth.mode, "location": location.dump(auth.location), "keys": keys}
    return found | {"virtualKeys": True} if auth.virtual else found


def parse_basic(context: Context, record: Record) -> BasicAuth | None:
    """Return `basicAuth`; every line of the password file is checked."""
    found = context.secret(record, "htpasswd", lines=True)
    if found is None:
        return None
    try:
        parse_htpasswd(found.secret.reveal())
    except ValueError as error:
        context.fault(Problem.VALUE, record, "htpasswd", str(error))
        return None
    realm = record.get("realm")
    if realm is not None and (any(c in '"\\' or c < " " or c > "~" for c in realm) or not realm):
        context.fault(Problem.VALUE, record, "realm", "a realm must have printable characters without quotes")
    return BasicAuth(
        users=found.secret,
        file=found.file,
        realm="Restricted" if realm is None else realm,
        mode=record.get("mode", "strict"),
        location=location.parse(context, record.get("authorizationLocation"), BASIC),
    )


def dump_basic(auth: BasicAuth) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    return {
        "htpasswd": REDACTED if auth.file is None else {"file": auth.file},
        "realm": auth.realm,
        "mode": auth.mode,
        "authorizationLocation": location.dump(auth.location),
    }
