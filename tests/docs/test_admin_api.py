"""The OpenAPI document of the admin server: made from the server's table, current, and a valid document."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.deploy.script_rig import script

HOME = Path(__file__).parents[2]
FILE = HOME / "docs/schema/admin.openapi.json"
generate = script("ci/admin_api/generate.py")
DOCUMENT = json.loads(FILE.read_text())


def test_the_committed_files_are_current() -> None:
    assert json.loads(json.dumps(generate.document())) == DOCUMENT, "run: make admin-api"
    assert (HOME / "docs/admin-api.md").read_text() == generate.page(), "run: make admin-api"


def test_every_row_of_the_server_is_in_it() -> None:
    for row in generate.rows():
        below = [path for path, item in DOCUMENT["paths"].items() if row.fits(path) and row.method.lower() in item]
        assert below, f"{row.method} {row.path}"


def test_every_path_is_of_a_row() -> None:
    rows = generate.rows()
    for path, item in DOCUMENT["paths"].items():
        for method in item:
            assert any(row.method.lower() == method and row.fits(path) for row in rows), f"{method} {path}"


def test_an_endpoint_without_words_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    table = generate.rows()
    extra = table[0]._replace(path="/new")
    monkeypatch.setattr(generate, "rows", lambda: (*table, extra))
    with pytest.raises(generate.Mismatch, match="GET /new has no words"):
        generate.operations()
    monkeypatch.setattr(generate, "rows", lambda: table[:-1])
    with pytest.raises(generate.Mismatch, match="no endpoints: POST /upgrade"):
        generate.operations()


def schemas(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if isinstance(node.get("schema"), dict):
            yield node["schema"]
        for value in node.values():
            yield from schemas(value)
    elif isinstance(node, list):
        for value in node:
            yield from schemas(value)


def test_its_schemas_are_schemas_and_its_references_lead_somewhere() -> None:
    named = DOCUMENT["components"]["schemas"]
    found = [*named.values(), *schemas(DOCUMENT["paths"])]
    assert len(found) > 100
    for schema in found:
        Draft202012Validator.check_schema(schema)
    references = set(re.findall(r"#/components/schemas/(\w+)", FILE.read_text()))
    assert references == named.keys()


def test_each_path_declares_its_parameters() -> None:
    for path, item in DOCUMENT["paths"].items():
        for method, one in item.items():
            declared = {each["name"] for each in one.get("parameters", ()) if each["in"] == "path"}
            assert declared == set(re.findall(r"\{(\w+)\}", path)), f"{method} {path}"
            assert one["responses"], f"{method} {path}"


@pytest.fixture(scope="module", autouse=True)
def path_of_scripts() -> Iterator[None]:
    """The script finds its neighbours by itself; here they go again."""
    yield
    sys.path.remove(str(HOME / "ci/admin_api"))
