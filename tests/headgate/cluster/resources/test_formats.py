"""Texts with limits, durations, sizes, references."""

from __future__ import annotations

import re

import pytest

from headgate.cluster.resources import formats
from headgate.document import fields


@pytest.mark.parametrize("text", ["1ms", "5s", "1h30m", "99999h", "1h1m1s1ms"])
def test_a_duration_of_a_resource_is_one_of_the_file(text: str) -> None:
    assert re.fullmatch(formats.DURATION_PATTERN, text)
    assert fields.duration_ms(text) > 0


@pytest.mark.parametrize("text", ["1.5s", "100000s", "5", "1h1m1s1ms1h", "-1s", "1us", ""])
def test_longer_forms_of_the_file_are_none_of_a_resource(text: str) -> None:
    assert not re.fullmatch(formats.DURATION_PATTERN, text)


@pytest.mark.parametrize("text", ["http://a", "https://a.test:1/x/y", "http://[::1]:80/"])
def test_a_url_of_a_resource_is_one_of_the_file(text: str) -> None:
    assert re.fullmatch(formats.URL_PATTERN, text)
    assert fields.url(text).host


@pytest.mark.parametrize("text", ["ftp://a", "http://", "http://me@a", "http://a?b", "http://a/b#c", "a.test"])
def test_a_url_has_no_user_query_or_fragment(text: str) -> None:
    assert not re.fullmatch(formats.URL_PATTERN, text)


@pytest.mark.parametrize("text", ["4096", "64Ki", "2M"])
def test_a_size_of_a_resource_is_one_of_the_file(text: str) -> None:
    assert re.fullmatch(formats.BYTE_SIZE["pattern"], text)
    assert fields.byte_size(text) > 0


def test_a_form_with_conditions_keeps_the_rules_of_the_other() -> None:
    rules = formats.requires("a")
    found = formats.conditional({"type": "object"}, {"a": {"type": "boolean"}}, rules)
    assert list(found["properties"]) == ["a", "conditional"]
    alone, kept = found["x-kubernetes-validations"]
    assert alone["rule"] == "!has(self.conditional) || !(has(self.a))"
    assert kept == {"rule": "has(self.conditional) || (has(self.a))", "message": "a is required"}


def test_where_a_credential_is_put_is_no_expression() -> None:
    assert set(formats.READ_LOCATION["properties"]) == {"header", "queryParameter", "cookie", "expression"}
    assert set(formats.WRITE_LOCATION["properties"]) == {"header", "queryParameter", "cookie"}
