"""Cookies of the gateway's own do not leave it."""

from __future__ import annotations

import pytest

from headgate_engine.context.cookies import settle_cookies, without_session_cookies
from headgate_engine.context.headers import MessageHead


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ([], []),
        (["a=1; b=2"], ["a=1; b=2"]),
        (["gw_oidc_s_1=x"], []),
        (["a=1; gw_oidc_s_1=x; b=gw_oidc_s_1=x"], ["a=1; b=gw_oidc_s_1=x"]),
        (["a=1", " gw_oidc_t_1.2=x ;b=2"], ["a=1; b=2"]),
        (["a=1;;gw_oidc_s_1"], ["a=1"]),
        (["a=1;  b=2"], ["a=1;  b=2"]),
    ],
)
def test_sessions_and_logins_are_removed(fields: list[str], left: list[str]) -> None:
    head = MessageHead()
    for value in fields:
        head.add("cookie", value)
    settle_cookies(head)
    assert head.get_list("cookie") == left


def test_the_value_of_a_field() -> None:
    assert without_session_cookies("a=1; gw_oidc_s_x=y; b=\u00fc") == "a=1; b=\u00fc"
    assert without_session_cookies("gw_oidc_s_x=y") == ""
