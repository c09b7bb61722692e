"""Where guards ask, to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy import cloud_auth
from headgate.document import fields
from headgate.document.lazy_dataclass import replace
from headgate.document.secret import REDACTED
from headgate.errors import Problem
from headgate.ir.policies import BackendPolicies
from headgate.ir.policy.cloud_auth import AwsAuth, AzureAuth, CloudAuth, GcpAuth
from headgate.ir.policy.key_auth import KeyAuth
from headgate.ir.policy.prompt_guard import GuardService


def webhook_service(context: Context, record: Record) -> GuardService | None:
    """Return where a webhook is; None after a report."""
    reference = record.get("target")
    if reference is None or context.directory is None:
        return None
    target = context.directory.copies_to(reference)
    if target is None:
        return None
    keys = () if target.credential is None else (target.credential,)
    return GuardService(name=target.name, places=target.places, keys=keys)


def calls_to(
    context: Context, record: Record, default: str, policies: Record | None = None, *, key: str = "baseUrl"
) -> GuardService | None:
    """Return the service of a vendor: at `default`, or where `baseUrl` says; None after a report."""
    policies = record.get("policies") if policies is None else policies
    target = record.get("baseUrl")
    if target is None:
        try:
            target = fields.url(default)
        except ValueError as error:
            context.fault(Problem.VALUE, record, key, str(error))
            return None
    if context.directory is None:
        return None
    endpoint, options = context.directory.place_of(target, policies)
    prefix = (target.path or "").rstrip("/")
    changes = options.request_headers
    service = GuardService(
        name=endpoint.address,
        places=((endpoint, 1),),
        prefix=prefix,
        keys=_keys(context, policies, options),
        cloud=_cloud(context, policies, options),
        timeout_ms=options.request_timeout_ms or 10_000,
    )
    if changes is None:
        return service
    return replace(service, add=changes.add, set=changes.set, remove=changes.remove)


def _keys(context: Context, policies: Record | None, options: BackendPolicies) -> tuple[KeyAuth, ...]:
    auth = options.auth
    if auth is None or policies is None:
        return ()
    found = [*auth.extra, *([auth.main] if isinstance(auth.main, KeyAuth) else [])]
    if auth.main is not None and not isinstance(auth.main, KeyAuth | AwsAuth | GcpAuth | AzureAuth):
        what = " (other than keys and clouds, for calls of a guard)"
        context.fault(Problem.UNSUPPORTED, policies, "backendAuth", what)
    if any(key.location.kind != "header" for key in found):
        context.fault(Problem.UNSUPPORTED, policies, "backendAuth", " (keys outside of headers, for calls of a guard)")
    return tuple(found)


def _cloud(context: Context, policies: Record | None, options: BackendPolicies) -> CloudAuth | None:
    main = None if options.auth is None else options.auth.main
    if policies is None or not isinstance(main, AwsAuth | GcpAuth | AzureAuth):
        return None
    if isinstance(main, AwsAuth) and main.role is not None and main.role.varies:
        what = ".aws.assumeRole (with expressions, for calls of a guard)"
        context.fault(Problem.UNSUPPORTED, policies, "backendAuth", what)
    return main


def shown_service(service: GuardService) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    found: dict[str, Any] = {"target": {"host": service.name}}
    if service.prefix:
        found["path"] = service.prefix
    for name in ("add", "set"):
        if getattr(service, name):
            found.setdefault("requestHeaderModifier", {})[name] = dict(getattr(service, name))
    if service.remove:
        found.setdefault("requestHeaderModifier", {})["remove"] = list(service.remove)
    if service.keys:
        found["credentials"] = [{"key": REDACTED, "header": key.location.name} for key in service.keys]
    if service.cloud is not None:
        found["backendAuth"] = cloud_auth.dump(service.cloud)
    return found
