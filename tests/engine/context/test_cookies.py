"""Cookies of the gateway's own are for nobody else."""

from __future__ import annotations

import pytest

from headgate_drivers.requests import settle_cookies
from headgate_engine.context.request import make_context


@pytest.mark.parametrize(
    ("fields", "left", "taken"),
    [
        ([], [], None),
        (["a=1; b=2"], ["a=1; b=2"], None),
        (["gw_oidc_s_1=x"], [], [b"gw_oidc_s_1=x"]),
        (["a=1; gw_oidc_s_1=x; b=gw_oidc_s_1=x"], ["a=1; b=gw_oidc_s_1=x"], [b"gw_oidc_s_1=x"]),
        (["a=1", " gw_oidc_t_1.2=x ;b=2", "gw_oidc_s_1=y"], ["a=1; b=2"], [b"gw_oidc_t_1.2=x", b"gw_oidc_s_1=y"]),
        (["a=1;;gw_oidc_s_1"], ["a=1"], [b"gw_oidc_s_1"]),
        (["a=1;  b=2", "c=3"], ["a=1;  b=2", "c=3"], None),
        (["a=gw_oidc_s_1=x", "c=3"], ["a=gw_oidc_s_1=x", "c=3"], None),
    ],
)
def test_sessions_and_logins_are_taken_out(fields: list[str], left: list[str], taken: list[bytes] | None) -> None:
    ctx = make_context(headers=[("cookie", value) for value in fields])
    settle_cookies(ctx)
    assert ctx.request.get_list("cookie") == left
    assert ctx.own_cookies == taken
