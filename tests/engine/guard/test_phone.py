"""Telephone numbers against the library that their rules come from."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import effort
import phonenumbers
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata

from headgate_drivers.requests import is_phone_number

CI = Path(__file__).parents[3] / "ci"
REGIONS = ("US", "GB", "DE", "IL", "IN", "CA", "BR")


def library(candidate: bytes) -> bool:
    """What the library says of a candidate in any of the regions. Several regions may read the same number, which it is asked about once."""
    found: list[phonenumbers.PhoneNumber] = []
    for region in REGIONS:
        try:
            one = phonenumbers.parse(candidate.decode(), region)
        except phonenumbers.NumberParseException:
            continue
        if one not in found:
            if phonenumbers.is_valid_number(one):
                return True
            found.append(one)
    return False


def examples() -> list[tuple[int, str, str]]:
    """(country code, national prefix, national number) of each type of number of each region."""
    found = []
    for code, regions in COUNTRY_CODE_TO_REGION_CODE.items():
        for region in regions:
            metadata = PhoneMetadata.metadata_for_region_or_calling_code(code, region)
            for kind in range(11):
                number = (
                    phonenumbers.example_number_for_non_geo_entity(code)
                    if region == "001"
                    else phonenumbers.example_number_for_type(region, kind)
                )
                if number is not None:
                    national = phonenumbers.national_significant_number(number)
                    found.append((code, metadata.national_prefix or "0", national))
    return found


EXAMPLES = examples()
DIGITS = "0123456789"


def number(seed: int) -> bytes:
    """A number of some country with a few digits changed, or digits at random, as people write them."""
    draw = random.Random(seed)
    if draw.random() < 0.6:
        code, prefix, national = draw.choice(EXAMPLES)
        digits = list(national)
        for _ in range(draw.choice((0, 0, 1, 2, 4))):
            place = draw.randrange(len(digits))
            digits[place : place + draw.randint(0, 1)] = draw.choice(("", *DIGITS))
            digits = digits or ["1"]
        national = draw.choice(("", prefix)) + "".join(digits)
        start = draw.choice(("+", "++", "+(", "(", "", "00", "011", "0014", "+0"))
        text = start + draw.choice((str(code), "") if start in ("", "(") else (str(code),)) + national
    else:
        text = draw.choice(("", "+")) + "".join(draw.choices(DIGITS, k=draw.randint(5, 15)))
    begin = next(i for i, one in enumerate(text) if one.isdigit())
    for _ in range(draw.randint(0, 3)):
        place = draw.randint(begin + 1, max(begin + 1, len(text) - 1))
        text = text[:place] + draw.choice((" ", "-", ".", ") ", "  ", "\t", " (")) + text[place:]
    return text.rstrip(" -.()\t").encode()


# From seeds: choices that hypothesis makes itself cost ten times as much.
NUMBERS = st.integers(0, 2**64 - 1).map(number)


@settings(max_examples=effort.examples(4000), deadline=None)
@given(NUMBERS)
@example(b"+54 9 11 2345-6789")
@example(b"011 44 20 7946 0958")
@example(b"+378 881234")
@example(b"+39 06698 12345")
@example(b"+000")
@example(b"1")
@example(b"")
def test_a_candidate_is_a_number_when_the_library_says_so(candidate: bytes) -> None:
    if sum(48 <= one <= 57 for one in candidate) <= 15:
        assert is_phone_number(candidate) == library(candidate)


@pytest.mark.parametrize("text", [b"1" * 40, b"+" + b"9" * 400, b"(" * 400, b"0" * 20, b"+1\t415-555-2671", b"415+5552671"])
def test_what_no_number_looks_like_is_none(text: bytes) -> None:
    assert not is_phone_number(text)


def test_the_rules_are_those_of_the_library_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a new version of the library: `python ci/phone_rules.py`."""
    monkeypatch.syspath_prepend(str(CI))
    import phone_rules

    assert phone_rules.HEADER.read_text() == phone_rules.header()
    sys.modules.pop("phone_rules")
