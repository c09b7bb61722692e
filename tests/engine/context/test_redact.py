"""Which parameters of logged targets are redacted, and for how long."""

from __future__ import annotations

import pytest

from headgate_engine.context.redact import HiddenParameter, redacted


def test_a_configured_name_is_hidden_while_its_object_lives() -> None:
    target = "/p?Mark=1&b=2&m%61rk=3"
    assert redacted(target) == target
    held = HiddenParameter("mARK")
    again = HiddenParameter("mark")
    assert redacted(target) == "/p?Mark=<redacted>&b=2&m%61rk=<redacted>"
    del held
    assert redacted(target) == "/p?Mark=<redacted>&b=2&m%61rk=<redacted>", "another one has the same name"
    del again
    assert redacted(target) == target


def test_an_empty_name_hides_nothing_and_one_object_has_one_name() -> None:
    assert HiddenParameter("")
    assert redacted("/p?=1&a=2") == "/p?=1&a=2"
    held = HiddenParameter("mark")
    with pytest.raises(ValueError, match="hidden once"):
        held.__init__("other")  # type: ignore[misc]
    assert redacted("/p?mark=1&other=2") == "/p?mark=<redacted>&other=2"
    assert HiddenParameter.__new__(HiddenParameter)
