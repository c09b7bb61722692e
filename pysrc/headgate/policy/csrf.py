"""Compiles `csrf` to a step."""

from __future__ import annotations

from headgate.ir.policy.csrf import Csrf
from headgate_engine.context.request import Reply
from headgate_engine.steps.csrf import CsrfStep


def compile_csrf(csrf: Csrf, refused: Reply) -> CsrfStep:
    """Return the step; `refused` is the reply to a cross-site request."""
    return CsrfStep(csrf.origins, refused)
