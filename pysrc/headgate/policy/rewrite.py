"""Compiles `urlRewrite` and `requestRedirect` to steps."""

from __future__ import annotations

from headgate.ir.policy.rewrite import AuthorityRewrite, PathRewrite, Redirect, Rewrite
from headgate_engine.context.request import Reply
from headgate_engine.steps.rewrite import AuthorityChange, PathChange, RedirectStep, RewriteStep


def _authority(change: AuthorityRewrite | None) -> AuthorityChange | None:
    if change is None or change.keep or change.auto:
        return None
    return AuthorityChange(change.full, change.host, change.port)


def _path(change: PathRewrite | None) -> PathChange | None:
    return None if change is None else PathChange(
        change.full, change.prefix, -1 if change.level is None else change.level
    )


def compile_rewrite(rewrite: Rewrite, failed: Reply) -> RewriteStep:
    """Return the step; `failed` is the reply if a prefix must be replaced but the route matched none."""
    return RewriteStep(_authority(rewrite.authority), _path(rewrite.path), failed)


def compile_redirect(redirect: Redirect, failed: Reply) -> RedirectStep:
    """Return the step; `failed` has the same meaning as for compile_rewrite()."""
    authority, path = _authority(redirect.authority), _path(redirect.path)
    return RedirectStep(redirect.scheme, authority, path, redirect.status, failed)
