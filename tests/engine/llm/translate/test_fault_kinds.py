"""What errors mean, whatever their vendor calls them."""

from __future__ import annotations

import pytest

from headgate_engine.llm.translate.fault_kinds import (
    BY_STATUS,
    ERROR_TYPES,
    STATUSES,
    WORD_STATUSES,
    WORDS,
    kind_of,
    kind_of_status,
    status_of,
)


def test_tables_have_no_kind_that_clients_do_not_know() -> None:
    assert set(WORDS.values()) <= ERROR_TYPES
    assert set(BY_STATUS.values()) <= ERROR_TYPES
    assert set(WORD_STATUSES) <= set(WORDS)
    assert all(400 <= status < 600 for status in (*STATUSES.values(), *WORD_STATUSES.values(), *BY_STATUS))


@pytest.mark.parametrize(
    ("type", "code", "status", "kind"),
    [
        ("overloaded_error", None, 529, "overloaded_error"),
        ("overloaded_error", None, 503, "overloaded_error"),
        # OpenAI calls nearly all that the client can mend an invalid request.
        ("invalid_request_error", "invalid_api_key", 401, "authentication_error"),
        ("invalid_request_error", None, 401, "authentication_error"),
        ("invalid_request_error", "model_not_found", 400, "not_found_error"),
        ("invalid_request_error", "model_not_found", 404, "not_found_error"),
        ("invalid_request_error", None, 403, "permission_error"),
        ("tokens", "rate_limit_exceeded", 429, "rate_limit_error"),
        ("unheard_of", None, 429, "rate_limit_error"),
        ("unheard_of", None, 418, "invalid_request_error"),
        ("unheard_of", None, 0, "api_error"),
        (None, "invalid_image_url", 0, "invalid_request_error"),
        ("image_file_too_large", None, 0, "invalid_request_error"),
        ("api_error", None, 413, "request_too_large"),
        (None, None, 503, "api_error"),
        (None, "RESOURCE_EXHAUSTED", 0, "rate_limit_error"),
        (None, None, 424, "api_error"),
    ],
)
def test_kinds(type: str | None, code: str | None, status: int, kind: str) -> None:
    assert kind_of(type, code, status) == kind


@pytest.mark.parametrize(
    ("type", "code", "status"),
    [
        ("overloaded_error", None, 529),
        ("throttlingException", "throttlingException", 429),
        ("api_error", "serviceUnavailableException", 503),
        ("api_error", "modelStreamErrorException", 502),
        ("api_error", "UNAVAILABLE", 503),
        ("unheard_of", "unheard_of", 500),
        (None, None, 500),
    ],
)
def test_statuses(type: str | None, code: str | None, status: int) -> None:
    assert status_of(type, code) == status


def test_statuses_without_words() -> None:
    assert [kind_of_status(status) for status in (400, 404, 499, 500, 502, 529)] == [
        "invalid_request_error", "not_found_error", "invalid_request_error", "api_error", "api_error",
        "overloaded_error",
    ]  # fmt: skip
