"""Compiles locations of credentials."""

from __future__ import annotations

from headgate.ir.policy.location import Location
from headgate.policy.environment import Environment
from headgate_engine.steps.location import CredentialLocation


def compile_location(location: Location, env: Environment) -> CredentialLocation:
    """Return the engine object that finds, removes and sets a credential in a request."""
    program = env.program(location.expression, env.phase) if location.kind == "expression" else None
    return CredentialLocation(location.kind, location.name, location.prefix, program)
