"""Compiles `authorization` to a step."""

from __future__ import annotations

from headgate.ir.policy.authorization import Authorization
from headgate.policy.environment import Environment
from headgate_engine.context.request import Reply
from headgate_engine.steps.authorization import AuthorizationStep


def compile_authorization(rules: Authorization, env: Environment, refused: Reply, phase: str) -> AuthorizationStep:
    """Return the step; `refused` is the reply to a request that the rules deny."""
    deny, require, allow = (
        [env.program(text, phase) for text in texts] for texts in (rules.deny, rules.require, rules.allow)
    )
    return AuthorizationStep(deny, require, allow, refused, tells=True)
