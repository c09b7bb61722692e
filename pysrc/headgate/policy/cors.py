"""Compiles `cors` to a step."""

from __future__ import annotations

from headgate.ir.policy.cors import Cors
from headgate_engine.steps.cors import CorsStep


def compile_cors(cors: Cors) -> CorsStep:
    """Return the step that answers preflights and adds CORS fields to other responses."""
    return CorsStep(cors.origins, cors.methods, cors.headers, cors.exposed, cors.credentials, cors.max_age_s)
