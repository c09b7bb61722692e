"""The files of the page and the headers they come with."""

from __future__ import annotations

import asyncio
import re

import pytest

from headgate.admin.page import POLICY, assets, page_rows
from headgate.admin.web import AdminRequest, AdminResponse


def get(path: str, **headers: str) -> AdminResponse:
    row = next(row for row in page_rows() if row.fits(path))
    answer = asyncio.run(row.handler(AdminRequest("GET", path, {}, "localhost", headers)))  # type: ignore[arg-type]
    assert isinstance(answer, AdminResponse)
    return answer


@pytest.mark.parametrize(
    ("path", "status", "kind"),
    [
        ("/", 308, ""),
        ("/ui", 200, "text/html; charset=utf-8"),
        ("/ui/", 200, "text/html; charset=utf-8"),
        ("/ui/llm/models", 200, "text/html; charset=utf-8"),
        ("/ui/assets/app.js", 200, "text/javascript; charset=utf-8"),
        ("/ui/assets/views/trace.js", 200, "text/javascript; charset=utf-8"),
        ("/ui/assets/parts.css", 200, "text/css; charset=utf-8"),
        ("/ui/assets/mark.svg", 200, "image/svg+xml"),
        ("/ui/assets/none.js", 404, ""),
        ("/ui/assets/none", 404, ""),
        ("/ui/assets/", 404, ""),
        ("/ui/none.html", 404, ""),
        ("/ui/../page.py", 404, ""),
        ("/ui/assets/../../page.py", 404, ""),
        ("/ui/%2e%2e/page.py", 404, ""),
    ],
)
def test_paths(path: str, status: int, kind: str) -> None:
    answer = get(path)
    assert answer.status == status
    assert answer.content_type == (kind or answer.content_type)
    if status == 308:
        assert dict(answer.headers)["location"] == "/ui"


def test_every_answer_with_a_body_is_guarded() -> None:
    for path in ("/ui", *(f"/ui/{name}" for name in assets())):
        headers = dict(get(path).headers)
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-resource-policy"] == "same-origin"


def test_the_policy_allows_scripts_of_this_server_only() -> None:
    rules = dict(one.strip().partition(" ")[::2] for one in POLICY.split(";"))
    assert rules["default-src"] == rules["frame-ancestors"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in POLICY


def test_what_has_not_changed_is_not_sent_again() -> None:
    tag = dict(get("/ui").headers)["etag"]
    again = get("/ui", **{"if-none-match": tag})
    assert (again.status, again.body) == (304, b"")
    assert get("/ui", **{"if-none-match": '"other"'}).status == 200


def sources() -> dict[str, str]:
    return {name: asset.body.decode() for name, asset in assets().items()}


def test_no_file_names_another_host_or_makes_markup_of_text() -> None:
    for name, text in sources().items():
        # A name of SVG, and what is copied as a command.
        others = ("//www.w3.org", "//127.0.0.1")
        found = [url for url in re.findall(r"(?:https?:)?//[a-z0-9][a-z0-9.-]+", text) if not url.endswith(others)]
        assert found == [], name
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc", "javascript:"):
            assert word not in text, f"{name}: {word}"
    assert re.findall(r"<script(?![^>]*src=)|<style|\son\w+=|style=", sources()["index.html"]) == []


def test_every_module_that_is_imported_is_there() -> None:
    for name, text in sources().items():
        if name.endswith(".js"):
            folder = name.rpartition("/")[0]
            for path in re.findall(r'from "(\.[^"]+)"', text):
                parts = folder.split("/")
                for part in path.split("/"):
                    parts = parts[:-1] if part == ".." else parts if part == "." else [*parts, part]
                assert "/".join(parts) in assets(), f"{name} imports {path}"
    for path in re.findall(r'(?:src|href)="/ui/([^"]+)"', sources()["index.html"]):
        assert path in assets()


def test_files_are_small_enough_to_be_read() -> None:
    for name, text in sources().items():
        assert len(text.splitlines()) <= 300, name
    assert sum(map(len, sources().values())) < 240_000
