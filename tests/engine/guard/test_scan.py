"""The scanner against `re`, known vectors, and texts made to cost time."""

from __future__ import annotations

import effort
import pytest
import re_guard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headgate_engine.guard.edits import apply_edits
from headgate_engine.guard.scan import MASKED, MAX_MATCHES, ScanBudget, Scanner


def builtins(*names: str) -> Scanner:
    return Scanner([("builtin", name) for name in names])


def pattern(*texts: str) -> Scanner:
    return Scanner([("pattern", text) for text in texts])


CARD_THEN_DIGITS = Scanner([("builtin", "creditCard"), ("pattern", r"\d{2}")])


@pytest.mark.parametrize(
    ("scanner", "text", "masked"),
    [
        (builtins("email"), "Write to mara.oke@ex-ample.dev please", "Write to <EMAIL_ADDRESS> please"),
        (builtins("email"), "Write to a@b.co.", "Write to <EMAIL_ADDRESS>."),
        (builtins("email"), "a@b.co@d.ef and a@b", "<EMAIL_ADDRESS>@d.ef and a@b"),
        (builtins("ssn"), "id 219-09-9999, alt 219.09.9999", "id <SSN>, alt <SSN>"),
        (builtins("ssn"), "219\u201109\u20119999 219\u00a009\u00a09999", "<SSN> <SSN>"),
        (builtins("ssn"), "zip 12345-6789", "zip <SSN>"),
        (builtins("ssn"), "areas 000-12-3456 666-12-3456 900-12-3456", "areas 000-12-3456 666-12-3456 900-12-3456"),
        (builtins("ssn"), "219-00-9999 219-09-0000", "219-00-9999 219-09-0000"),
        (builtins("ssn"), "order 219099999", "order 219099999"),
        (builtins("ssn"), "my SSN is 219099999, Social Security no. 219099998", "my SSN is <SSN>, Social Security no. <SSN>"),
        (builtins("ssn", "caSin"), "n 130692544", "n <CA_SIN>"),
        (builtins("ssn", "caSin"), "ssn 130692544", "ssn <SSN>"),
        (builtins("caSin", "ssn"), "ssn 130692544", "ssn <CA_SIN>"),
        (builtins("caSin"), "sin 130 692 544 and 130692544", "sin <CA_SIN> and <CA_SIN>"),
        (builtins("caSin"), "sin 130 692 545", "sin 130 692 545"),
        (builtins("creditCard"), "pay 4111 1111 1111 1111 now", "pay <CREDIT_CARD> now"),
        (builtins("creditCard"), "pay 4111 1111 1111 1112 now", "pay 4111 1111 1111 1112 now"),
        (builtins("creditCard"), "amex 378282246310005", "amex <CREDIT_CARD>"),
        (builtins("creditCard"), "amex 3782-822463-10005", "amex <CREDIT_CARD>"),
        (builtins("creditCard"), "order 4000123456789", "order 4000123456789"),
        (builtins("creditCard"), "code 42 4111111111111111 123", "code 42 <CREDIT_CARD> 123"),
        (builtins("ssn"), "x219-09-9999", "x219-09-9999"),
        (builtins("ssn"), "\u6211\u7684219-09-9999\u53f7", "\u6211\u7684<SSN>\u53f7"),
        (builtins("ssn", "creditCard", "caSin"), "year 2026-11-20 ok", "year 2026-11-20 ok"),
        (builtins("phoneNumber"), "call (415) 555-2671, ok", "call <PHONE_NUMBER>, ok"),
        (builtins("phoneNumber"), "call +1 415-555-2671 now", "call <PHONE_NUMBER> now"),
        (builtins("phoneNumber"), "call +1 415-555-2671 12 times", "call <PHONE_NUMBER> 12 times"),
        (builtins("phoneNumber"), "415-555-2671 2026-11-20", "<PHONE_NUMBER> 2026-11-20"),
        (pattern("tok_[a-z0-9]{8}"), "use tok_ab12cd34!", "use <masked>!"),
        (CARD_THEN_DIGITS, "card 4111-1111-1111-1111 box 12-34", "card <CREDIT_CARD> box <masked>-<masked>"),
        (pattern("q*"), "abc", "abc"),
        (pattern("(?i)blue heron"), "A Blue Heron", "A <masked>"),
        (pattern("caf\u00e9+"), "un caf\u00e9\u00e9!", "un <masked>!"),
        # A later rule sees what the earlier ones have left, and may take a part of it.
        (pattern("a+", "x<mas"), "xaab", "<masked>ked>b"),
        (pattern("a+", "ked>b"), "xaab", "x<mas<masked>"),
    ],
)  # fmt: skip
def test_what_masking_makes_of_a_text(scanner: Scanner, text: str, masked: str) -> None:
    assert scanner.mask(text.encode()).decode() == masked


def test_a_text_without_a_match_has_no_rule() -> None:
    assert pattern("q*").first(b"abc") == -1
    assert pattern("q*").first(b"abqc") == 0
    assert builtins("ssn", "email").first(b"a@b.co") == 1
    assert Scanner([("pattern", "foo"), ("builtin", "email"), ("pattern", "bar")]).first(b"bar a@b.co") == 1


@pytest.mark.parametrize("text", ["(?<=a)b", r"(a)\1", "(", "a(?!b)"])
def test_a_pattern_without_a_linear_automaton_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="linear-time"):
        pattern(text)


TEXTS = st.text("0123456789 -.@abS_+\u00a0\u2011\u00e9,", max_size=60).map(str.encode)
NUMBERS = st.lists(
    st.sampled_from(
        [b"4111111111111111", b"4111", b"1111", b"219", b"09", b"9999", b"130692544", b"130", b"692", b"544", b"ssn",
         b" ", b"-", b".", b"a@b.co", b"_", b"\xc2\xa0", b"\xe2\x80\x91", b"378282246310005", b"5"]
    ),
    max_size=14,
).map(b"".join)  # fmt: skip


@settings(max_examples=effort.examples(400), deadline=None)
@given(TEXTS | NUMBERS)
def test_each_built_in_finds_what_the_oracle_finds(text: bytes) -> None:
    for name, oracle in (
        ("email", re_guard.emails),
        ("ssn", re_guard.ssns),
        ("caSin", re_guard.sins),
        ("creditCard", re_guard.cards),
    ):
        assert [edit[:2] for edit in builtins(name).edits(text)] == oracle(text), name


RULES = st.lists(
    st.sampled_from(["email", "creditCard", "ssn", "caSin"]).map(lambda name: ("builtin", name))
    # Patterns of digits, of words that tell what a number is, of what masks have left, and of nothing.
    | st.sampled_from([r"\d{2}", "4111", "(?i)s+n", "[A-Z_]+", "<[A-Z]", "e?d>", "1*", "q"]).map(lambda text: ("pattern", text)),
    min_size=1,
    max_size=6,
)  # fmt: skip


@settings(max_examples=effort.examples(600), deadline=None)
@given(RULES, NUMBERS | TEXTS)
@example([("builtin", "email"), ("builtin", "ssn")], b"ssn.a@b.co 130692544")
@example([("builtin", "email"), ("pattern", "<[A-Z]")], b"a@b.co")
@example([("builtin", "email"), ("pattern", "q"), ("builtin", "ssn")], b"ssn.a@b.co 130692544")
def test_several_rules_do_what_the_oracle_does(rules: list[tuple[str, str]], text: bytes) -> None:
    assert Scanner(rules).mask(text) == re_guard.masked(rules, text)


HOSTILE = {
    "digits": b"1" * 2_000_000,
    "single digits": b"1 " * 1_000_000,
    "at signs": b"a@" * 1_000_000,
    "local parts": b"a" * 2_000_000,
    "ssn": b"123-45-6789 " * 160_000,
    "cards": b"4111111111111111 " * 120_000,
    "dots": b"a@b" + b".a" * 1_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_two_megabytes_made_for_the_scanner_come_to_an_end(name: str) -> None:
    """One that looked at everything again for each byte would take hours."""
    scanner = Scanner([("builtin", one) for one in ("ssn", "creditCard", "phoneNumber", "email", "caSin")])
    masked = scanner.mask(HOSTILE[name])
    assert len(masked) <= len(HOSTILE[name]) * 2


def test_behind_the_last_match_that_is_counted_everything_is_masked() -> None:
    text = b"ab" * (MAX_MATCHES + 5) + b" end"
    masked = Scanner([("pattern", "b")]).mask(text)
    assert masked.endswith(b"a" + MASKED)
    assert b"end" not in masked
    assert b"b" not in masked


def test_too_many_built_in_matches_mask_the_rest() -> None:
    masked = builtins("email").mask(b"a@b.co " * 50_000 + b"the end")
    assert not masked.endswith(b"the end")
    assert b"a@b" not in masked


def test_time_for_matches_that_each_run_to_the_end_is_bounded() -> None:
    scanner = Scanner([("pattern", "(?s)a(.*z)?")])
    budget = ScanBudget(seconds=0.01)
    masked = apply_edits(text := b"a" * 400_000, scanner.edits(text, budget))
    assert masked.endswith(MASKED)
    assert b"a" not in masked.replace(MASKED, b"")


def test_patterns_that_are_too_large_together_are_searched_one_by_one() -> None:
    scanner = Scanner([("pattern", rf"(?i)\p{{L}}{{3,20}}-{number}\pN+") for number in range(10)])
    text = "no, wörds-75, and abc-17".encode()
    assert scanner.first(text) == 1
    assert [(text[start:stop], rule) for start, stop, _, rule in scanner.edits(text)] == [("wörds-75".encode(), 7), (b"abc-17", 1)]
    assert scanner.first(b"wo-7") == -1


def test_a_pattern_with_a_large_program_is_refused() -> None:
    """To compile it would hold the interpreter's lock for long: 137 ms for 360,000 instructions, which RE2 takes."""
    Scanner([("pattern", r"\p{Lu}\p{Ll}{2,20}\s\p{Lu}\p{Ll}{2,20}")])
    with pytest.raises(ValueError, match=r"\d{2},\d{3} instructions of RE2, of at most 40,000"):
        Scanner([("pattern", r"\p{L}{1,40}")])
