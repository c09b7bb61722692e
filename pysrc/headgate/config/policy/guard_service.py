"""Where guards ask, to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy.remote_service import dump_policies, dump_target
from headgate.document import fields
from headgate.errors import Problem
from headgate.ir.policy.prompt_guard import GuardService
from headgate.ir.remote_service import RemoteService


def webhook_service(context: Context, record: Record) -> GuardService | None:
    """Return where a webhook is; None after a report."""
    reference = record.get("target")
    if reference is None or context.directory is None:
        return None
    service = context.directory.remote_service(reference, grpc=False)
    return None if service is None else GuardService(remote=service)


def calls_to(context: Context, record: Record, default: str, *, key: str = "baseUrl") -> GuardService | None:
    """Return the service of a vendor: at `default`, or where `baseUrl` says; None after a report."""
    target = record.get("baseUrl")
    if target is None:
        try:
            target = fields.url(default)
        except ValueError as error:
            context.fault(Problem.VALUE, record, key, str(error))
            return None
    if context.directory is None:
        return None
    endpoint, policies = context.directory.place_of(target, record.get("policies"))
    service = RemoteService(kind="host", name=endpoint.address, places=((endpoint, 1),), policies=policies)
    return GuardService(remote=service, prefix=(target.path or "").rstrip("/"))


def shown_service(service: GuardService) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    found: dict[str, Any] = {"target": dump_target(service.remote)}
    if service.prefix:
        found["path"] = service.prefix
    return {**found, "policies": dump_policies(service.remote, service.timeout_ms)}
