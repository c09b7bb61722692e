"""Configuration errors as text."""

from __future__ import annotations

import pytest

from headgate.errors import ConfigError, ConfigErrors, GatewayError, Problem

CASES = [
    (ConfigError(Problem.VALUE, "a.b", "bad", "c.yaml", 4, 2), "a.b: bad (c.yaml:4)"),
    (ConfigError(Problem.SYNTAX, "", "bad", "c.yaml", 4, 2), "bad (c.yaml:4)"),
    (ConfigError(Problem.FILE, "", "bad", "c.yaml"), "bad (c.yaml)"),
    (ConfigError(Problem.UNSUPPORTED, "a.b", "", "c.yaml", 4, 2), "not supported yet: a.b (c.yaml:4)"),
    (ConfigError(Problem.UNSUPPORTED, "a", " = x", "c", 1, 1), "not supported yet: a = x (c:1)"),
]


@pytest.mark.parametrize(("error", "text"), CASES, ids=[case[1] for case in CASES])
def test_an_error_points_to_its_place(error: ConfigError, text: str) -> None:
    assert str(error) == text


def test_errors_print_one_per_line() -> None:
    errors = ConfigErrors([case[0] for case in CASES])
    assert str(errors).splitlines() == [case[1] for case in CASES]
    assert isinstance(errors, GatewayError)
