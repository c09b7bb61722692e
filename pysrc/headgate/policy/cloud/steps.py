"""Compiles cloud credentials to steps: one waits until the credential is available, and for AWS a second one signs."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from headgate.document.lazy_dataclass import replace
from headgate.ir.policy.cloud_auth import BEARER, AwsAuth, CloudAuth, GcpAuth
from headgate.policy.cloud.aws import place_of, region_of
from headgate.policy.cloud.refresher import CredentialError, CredentialRefresher
from headgate.policy.cloud.store import CredentialStore
from headgate.policy.environment import Environment
from headgate.policy.location import compile_location
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.expr.values import EvaluationError
from headgate_engine.plan.step import AsyncStep, Step
from headgate_engine.steps.aws_signature import AwsSignatureStep
from headgate_engine.steps.held import HeldStep
from headgate_engine.steps.location import CredentialLocation

FAILED: Final = "backend authentication failed: "
REASON: Final = "Internal"
TEXT: Final = ((b"content-type", b"text/plain"),)
# AWS STS limits for a session name and for the value of a tag
# (https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html).
SESSION: Final = re.compile(r"[A-Za-z0-9_=,.@-]{2,64}")
TAG: Final = re.compile(r"[\w\s.:/=+@-]{0,256}")

Obtain = Callable[[RequestContext], Reply | Awaitable[Reply | None] | None]


def failed(error: object) -> Reply:
    """Return the reply to a request whose credential is not available."""
    return Reply(500, f"{FAILED}{error}".encode(), TEXT, REASON)


def placed(auth: CloudAuth, host: str, environ: Mapping[str, str] = os.environ) -> CloudAuth:
    """Return the credentials with the settings that depend on the host of the requests.

    Raises ValueError if a setting is still missing.
    """
    if isinstance(auth, GcpAuth):
        return replace(auth, audience=auth.audience or f"https://{host}") if auth.kind == "idToken" else auth
    if not isinstance(auth, AwsAuth):
        return auth
    region, service = place_of(host)
    region = auth.region or region or region_of(environ)
    service = auth.service or service
    if region is None or service is None:
        what = "a region" if region is None else "a service name"
        raise ValueError(f"backendAuth.aws needs {what}: it cannot be derived from the host {host!r}")
    return replace(auth, region=region, service=service)


def compile_cloud(auth: CloudAuth, env: Environment) -> Step:
    """Return the step that waits for the credential and, if it is a token, adds it to the request."""
    store = _store(env)
    if isinstance(auth, AwsAuth):
        if auth.role is not None and auth.role.varies:
            return AsyncStep("backendAuth", _session(auth, env, store))
        refresher = store.refresher(auth)
        return HeldStep(_obtain(refresher, None), refresher.held)
    refresher = store.refresher(auth)
    location = compile_location(BEARER, env)
    return HeldStep(_obtain(refresher, location), refresher.held, location)


def compile_signature(auth: CloudAuth, env: Environment) -> Step | None:
    """Return the step that signs the complete request, None if the credential needs no signature."""
    if not isinstance(auth, AwsAuth):
        return None
    assert auth.region is not None
    assert auth.service is not None
    varies = auth.role is not None and auth.role.varies
    held = None if varies else _store(env).refresher(auth).held
    return AwsSignatureStep(held, region=auth.region, service=auth.service)


def _store(env: Environment) -> CredentialStore:
    assert env.credentials is not None
    return env.credentials()


def _obtain(refresher: CredentialRefresher, location: CredentialLocation | None) -> Obtain:
    held = refresher.held

    def put(ctx: RequestContext) -> None:
        if location is not None:
            assert isinstance(held.value, bytes)
            location.set(ctx, held.value)

    async def wait(ctx: RequestContext) -> Reply | None:
        try:
            await refresher.wait()
        except CredentialError as error:
            return failed(error)
        put(ctx)
        return None

    def obtain(ctx: RequestContext) -> Awaitable[Reply | None] | None:
        if not held.fresh:
            refresher.renew()
        if not held.usable:
            return wait(ctx)
        put(ctx)
        return None

    return obtain


def _session(auth: AwsAuth, env: Environment, store: CredentialStore) -> Obtain:
    """Return the function that obtains the keys of a role session that depends on the request."""
    role = auth.role
    assert role is not None
    name = None if role.expression is None else env.program(role.expression, "backend")
    tags = [
        (tag.key, tag.value, None if tag.expression is None else env.program(tag.expression, "backend"))
        for tag in role.tags
    ]

    def obtain(ctx: RequestContext) -> Reply | Awaitable[Reply | None] | None:
        try:
            session = role.session if name is None else _text(name.evaluate(ctx), SESSION)
            told = tuple((key, value if text is None else _text(text.evaluate(ctx), TAG)) for key, value, text in tags)
        except (EvaluationError, ValueError):
            return failed("the name of the role session, or a tag, has no value")
        refresher = store.session(auth, session, told)
        if not refresher.held.fresh:
            refresher.renew()
        if not refresher.held.usable:
            return wait(ctx, refresher)
        ctx.signing_keys = refresher.held.value
        return None

    async def wait(ctx: RequestContext, refresher: CredentialRefresher) -> Reply | None:
        try:
            await refresher.wait()
        except CredentialError as error:
            return failed(error)
        ctx.signing_keys = refresher.held.value
        return None

    return obtain


def _text(value: object, form: re.Pattern[str]) -> str:
    text = value if isinstance(value, str) else str(value) if isinstance(value, int) else None
    if text is None or not form.fullmatch(text):
        raise ValueError("not a value that AWS STS accepts")
    return text
