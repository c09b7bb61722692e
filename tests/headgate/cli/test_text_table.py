"""Tables of text."""

from __future__ import annotations

import pytest

from headgate.cli.text_table import padded, printable, shortened, show_table, text_table, width_of

HEADS = ("NAME", "SPARE", "COUNT", "WHERE")
ROWS = [("short", "spared", "12345678901234567890", "x" * 40), ("y" * 60, "-", "1", "here")]


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert text_table(("A", "LONG"), [("abc", "x"), ("", "yz")]) == "A    LONG\nabc  x\n     yz\n"
    assert text_table(("A",), []) == "A\n"


def test_no_name_controls_the_terminal() -> None:
    assert printable("a\x1b[31m\n\x9b\u202eb é") == "a?[31m???b é"
    assert "\x1b" not in text_table(("A",), [("\x1b]0;x\x07",)])


def test_wide_characters_take_two_columns_and_combining_ones_none() -> None:
    assert [width_of(text) for text in ("abc", "日本語", "u\u0308", "é")] == [3, 6, 1, 1]
    assert padded("日本", 6) == "日本  "
    assert shortened("日本語", 5) == "日本…"
    assert shortened("日本語", 6) == "日本語"
    assert text_table(("A", "B"), [("日本", "x"), ("abcd", "y")]).splitlines()[1:] == ["日本  x", "abcd  y"]


@pytest.mark.parametrize("most", [56, 80, 100])
def test_a_table_fits_the_terminal(most: int) -> None:
    lines = text_table(HEADS, ROWS, most, ("SPARE",)).splitlines()
    assert max(map(width_of, lines)) <= most
    assert "12345678901234567890" in lines[1], "a figure is never cut"
    assert lines[2].startswith("yyyyyyyy")
    assert "…" in lines[2]
    assert ("SPARE" in lines[0]) == (most > 56)


def test_what_has_room_is_left_alone() -> None:
    assert text_table(HEADS, ROWS, 200, ("SPARE",)) == text_table(HEADS, ROWS)


def test_a_pipe_gets_all_of_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    show_table(HEADS, ROWS, ("SPARE",))
    assert capsys.readouterr().out == text_table(HEADS, ROWS)
