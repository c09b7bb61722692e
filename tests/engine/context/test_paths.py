"""Paths of requests in one form, and their readings."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_engine.context.paths import ALL_COMBINATIONS, MAX_DOUBTFUL, MODES, readings, resolved, settled


@pytest.mark.parametrize(
    ("path", "form"),
    [
        (b"/", b"/"),
        (b"/a/b", b"/a/b"),
        # RFC 3986 section 5.4
        (b"/b/c/./g", b"/b/c/g"),
        (b"/b/c/g/.", b"/b/c/g/"),
        (b"/b/c/g/..", b"/b/c/"),
        (b"/b/c/../../../g", b"/g"),
        (b"/..", b"/"),
        (b"/.", b"/"),
        (b"/..g", b"/..g"),
        (b"/g..", b"/g.."),
        (b"/.g", b"/.g"),
        (b"/b/./../g", b"/g"),
        (b"/.well-known/x", b"/.well-known/x"),
        # RFC 3986 section 6.2.2.2
        (b"/%61dm%69n", b"/admin"),
        (b"/%7Euser", b"/~user"),
        (b"/%2e%2E/admin", b"/admin"),
        (b"/x/%2e./admin", b"/admin"),
        # What means something else, or nothing, stays.
        (b"/a%2fb%3fc%20%C3%A9", b"/a%2fb%3fc%20%C3%A9"),
        (b"/%", b"/%"),
        (b"/%6", b"/%6"),
        (b"/%zz%6", b"/%zz%6"),
        # What is no escape does not become one: the backend would resolve it.
        (b"/a/%2%65%2%65/b", b"/a/%2%65%2%65/b"),
        (b"/a/%%32e%%32%65/b", b"/a/%%32e%%32e/b"),
        (b"/%a%61", b"/%a%61"),
        (b"/%a%7e%61", b"/%a~a"),
        (b"/%25%61", b"/%25a"),
        (b"/%252e", b"/%252e"),
        (b"//a//", b"//a//"),
        (b"//a/../b", b"//b"),
        (b"*", b"*"),
    ],
)
def test_the_form_of_a_path(path: bytes, form: bytes) -> None:
    assert resolved(path) == form
    assert resolved(form) == form


@given(st.lists(st.sampled_from([b"/", b"//", b".", b"..", b"%2e", b"%2E", b"a", b"%61", b"%2f", b"%", b";x", b"%25", b"2", b"%32", b"%65"])))
def test_the_form_says_the_same(pieces: list[bytes]) -> None:
    path = b"/" + b"".join(pieces)
    form = resolved(path)
    assert resolved(form) == form
    assert not {b".", b".."} & set(form.split(b"/"))
    # What decodes everything and then resolves comes to the same, where no escape is one of a slash or of an escape.
    if b"%2f" not in path and b"%25" not in path:
        assert resolved(unquote_to_bytes(path)) == resolved(unquote_to_bytes(form))


@pytest.mark.parametrize(
    "path",
    [
        b"//admin", b"/admin//", b"/x%2f..%2fadmin", b"/%2fadmin", b"/x%2F%2e%2e/admin", b"/%5cadmin", b"/\\admin",
        b"/x/..;/admin", b"/admin;a=b", b"/;x/admin", b"/%252e%252e/admin", b"/%2561dmin", b"/x/%252e%252e%252fadmin",
        b"/x\\..\\admin", b"/x/..%5cadmin", b"/a//../../admin", b"/%25252fadmin;x//",
        b"/x/%2%65%2%65/admin", b"/x/%%32e%%32%65/admin", b"/%%361dmin",
    ],
)  # fmt: skip
def test_readings_of_admin(path: bytes) -> None:
    form = resolved(path)
    found = {one.rstrip(b"/") for one in (form, *readings(form))}
    wanted = b"/%252fadmin" if path.startswith(b"/%25252f") else b"/admin"
    assert wanted in found or b"/%2fadmin" in found


@given(st.lists(st.sampled_from([b"/", b"//", b"..", b"\\", b"%5c", b"a", b"%2f", b"%2F", b";x", b"%25", b"%252e"]), max_size=200))
def test_the_number_of_readings_is_bounded(pieces: list[bytes]) -> None:
    path = b"/" + b"".join(pieces)
    found = readings(path)
    assert path not in found
    assert len(found) == len(set(found)) <= (127 if len(path) <= ALL_COMBINATIONS else 13)


def test_modes() -> None:
    keep, refuse = MODES["keep"], MODES["refuse"]
    assert settled("/a/../b?x=/../y") == ("/b?x=/../y", False)
    assert settled("/a%2fb") == ("/a%2fb", True)
    assert settled("/a%20b") == ("/a%20b", False)
    assert settled("/plain/path") == settled("/plain/path", refuse) == ("/plain/path", False)
    assert settled("/a/../b", keep) == ("/a/../b", True)
    assert settled("/a/../b", refuse) is settled("/a%2fb", refuse) is settled("/%61", refuse) is None
    assert settled("/a%20b", refuse) == ("/a%20b", False)
    assert settled("/100%") == ("/100%", True)
    assert settled("/100%", refuse) is None
    assert settled("/" + "%2f" * MAX_DOUBTFUL) is None
