"""Compiles `apiKey` with virtual keys, and what limits them, to steps."""

from __future__ import annotations

from typing import Final

from headgate.ir.policy.identity import ApiKeyAuth
from headgate.policy.environment import Environment
from headgate.policy.location import compile_location
from headgate.policy.refusals import EXPIRED_KEY, KEY_ELSEWHERE, REVOKED_KEY, STORELESS, UNPRICED
from headgate_engine.context.request import Reply
from headgate_engine.llm.pattern import ModelPattern
from headgate_engine.steps.key_budget import KeyBudgetStep
from headgate_engine.steps.virtual_key import KeyTable, VirtualKeyStep

TEXT: Final = (b"content-type", b"text/plain")
FileKeys = dict[bytes, tuple[dict[str, object], tuple[ModelPattern, ...] | None]]


def _reply(status: int, text: str, reason: str) -> Reply:
    return Reply(status, text.encode(), (TEXT,), reason)


def compile_virtual(auth: ApiKeyAuth, keys: FileKeys, replies: tuple[Reply, Reply], env: Environment) -> VirtualKeyStep:
    """Return the step of `apiKey` with virtual keys. replies: to a request without a key, and with an unknown one."""
    table = env.key_table(wanted=True)
    others = (
        _reply(401, EXPIRED_KEY, "APIKeyAuth"),
        _reply(401, REVOKED_KEY, "APIKeyAuth"),
        _reply(403, KEY_ELSEWHERE, "Authorization"),
        _reply(503, STORELESS, "RateLimit"),
    )
    assert table is not None
    return VirtualKeyStep(compile_location(auth.location, env), auth.mode, keys, table, (*replies, *others))


def budget_step(table: KeyTable) -> KeyBudgetStep:
    """Return the step that reserves what a request for a model may come to."""
    return KeyBudgetStep(table, _reply(403, UNPRICED, "Authorization"), _reply(503, STORELESS, "RateLimit"))
