"""Each policy between file and IR: one file per policy, `parse` and `dump`; `table` lists them.

A module is loaded when it is first used as an attribute of this package (`policy.cors.parse`): with the first policy of
its kind.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    # isort: off
    from headgate.config.policy import (
        authorization as authorization,
        backend_auth as backend_auth,
        buffer as buffer,
        cloud_auth as cloud_auth,
        conditional as conditional,
        cors as cors,
        csrf as csrf,
        delay as delay,
        direct_response as direct_response,
        document_source as document_source,
        expression as expression,
        ext_authz as ext_authz,
        ext_proc as ext_proc,
        grpc_options as grpc_options,
        guard_service as guard_service,
        headers as headers,
        health as health,
        identity as identity,
        inference_routing as inference_routing,
        local_rate_limit as local_rate_limit,
        location as location,
        mcp_authentication as mcp_authentication,
        mcp_guardrails as mcp_guardrails,
        mirror as mirror,
        network_ext_authz as network_ext_authz,
        oidc as oidc,
        otlp as otlp,
        prompt_enrichment as prompt_enrichment,
        prompt_guard as prompt_guard,
        remote_rate_limit as remote_rate_limit,
        remote_service as remote_service,
        retry as retry,
        rewrite as rewrite,
        timeout as timeout,
        token_exchange as token_exchange,
        transformation as transformation,
    )
    # isort: on


def __getattr__(name: str) -> ModuleType:
    """Return the module of a policy. Python asks once: the import makes it an attribute."""
    if name.startswith("_"):
        raise AttributeError(name)
    return import_module(f"{__name__}.{name}")
