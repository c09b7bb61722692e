"""Tables of text."""

from __future__ import annotations

from headgate.cli.text_table import printable, text_table


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert text_table(("A", "LONG"), [("abc", "x"), ("", "yz")]) == "A    LONG\nabc  x\n     yz\n"
    assert text_table(("A",), []) == "A\n"


def test_no_name_controls_the_terminal() -> None:
    assert printable("a\x1b[31m\n\x9b\u202eb é") == "a?[31m???b é"
    assert "\x1b" not in text_table(("A",), [("\x1b]0;x\x07",)])
