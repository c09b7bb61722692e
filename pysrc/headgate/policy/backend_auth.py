"""Compiles `backendAuth` to steps."""

from __future__ import annotations

import json
import time

from headgate.crypto.signing import sign, signing_key
from headgate.ir.policy.backend_auth import BackendAuth, JwtSign, Passthrough
from headgate.ir.policy.cloud_auth import AwsAuth, CloudAuth
from headgate.ir.policy.key_auth import KeyAuth
from headgate.ir.policy.token_exchange import CrossAppAccess, TokenExchange
from headgate.policy.cloud.steps import compile_cloud, compile_signature
from headgate.policy.environment import Environment
from headgate.policy.location import compile_location
from headgate.policy.token_exchange import compile_cross_app, compile_exchange
from headgate_engine.plan.step import Step
from headgate_engine.steps.backend_auth import (
    LocatedCredentialStep,
    MintedCredentialStep,
    PassthroughStep,
)
from headgate_engine.steps.credential import CredentialStep

# A minted token is reused for this share of its lifetime.
USED_SHARE = 0.8


def compile_backend_auth(auth: BackendAuth, env: Environment) -> list[Step]:
    """Return the steps that each attempt runs."""
    found: list[Step] = []
    main = auth.main
    if isinstance(main, KeyAuth):
        found.append(_key(main, env))
    elif isinstance(main, Passthrough):
        found.append(PassthroughStep(compile_location(main.location, env)))
    elif isinstance(main, JwtSign):
        found.append(_signed(main, env))
    elif isinstance(main, CloudAuth):
        found.append(compile_cloud(main, env))
    elif isinstance(main, TokenExchange):
        found.append(compile_exchange(main, env))
    elif isinstance(main, CrossAppAccess):
        found.append(compile_cross_app(main, env))
    found += [_key(one, env) for one in auth.extra]
    return found


def compile_final(auth: BackendAuth, env: Environment) -> list[Step]:
    """Return the steps that run last, on the complete request as the backend receives it."""
    step = compile_signature(auth.main, env) if isinstance(auth.main, AwsAuth) else None
    return [] if step is None else [step]


def _key(auth: KeyAuth, env: Environment) -> Step:
    place, value = auth.location, auth.key.secret.reveal_bytes()
    if place.kind == "header":
        return CredentialStep(place.name, place.prefix.encode() + value)
    return LocatedCredentialStep(compile_location(place, env), value)


def _signed(auth: JwtSign, env: Environment) -> MintedCredentialStep:
    key = signing_key(auth.key.secret.reveal(), auth.algorithm)
    claims = json.loads(auth.claims)

    def mint() -> tuple[bytes, float]:
        token = sign(key, auth.algorithm, claims, ttl_s=auth.ttl_s, now=time.time(), kid=auth.kid)
        return token, auth.ttl_s * USED_SHARE

    return MintedCredentialStep(compile_location(auth.location, env), mint)
