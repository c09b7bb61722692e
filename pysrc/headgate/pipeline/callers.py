"""Calls that policies make to services of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.ir.endpoint import Endpoint
from headgate.ir.policies import NO_BACKEND_POLICIES, BackendPolicies
from headgate.net.authority import own_authority
from headgate.pipeline.pools import Pools
from headgate.policy.environment import Environment
from headgate_engine.plan.step import Step

if TYPE_CHECKING:
    from headgate_engine.link.grpc_call import GrpcCaller


def grpc_of(pools: Pools, endpoint: Endpoint, subtype: str) -> GrpcCaller:
    """Return what makes unary gRPC calls to an endpoint. subtype: label of its calls in metrics."""
    from headgate_engine.link.grpc_call import GrpcCaller

    return GrpcCaller(pools.get(endpoint), own_authority(endpoint), pools.calls("Policy", subtype), subtype)


def steps_of_call(policies: BackendPolicies, host: str, env: Environment) -> tuple[Step, ...]:
    """Return what the policies of a service do to each call. `host`: the name of the service. Raises ValueError."""
    if policies == NO_BACKEND_POLICIES:
        return ()
    from headgate.pipeline.phases import request_steps
    from headgate.pipeline.steps import at_host

    own = at_host(policies, host) if host else policies
    # The service is asked while policies of another phase are compiled.
    phase, reads_body = env.phase, env.reads_body
    try:
        return (*request_steps("backend", own, env), *request_steps("departure", own, env))
    finally:
        env.phase, env.reads_body = phase, reads_body
