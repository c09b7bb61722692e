"""The CRDs without an API server: the committed files, what every schema must have, and the examples by jsonschema."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from resource_cases import BASES, DEFAULTS, KINDS, Spec, changed
from resource_refusals import REFUSALS, Refused

from headgate.cluster.resources import kinds
from headgate.document.nodes import plain
from headgate.document.read import read

FOLDER = Path(__file__).parents[4] / "deploy" / "crds"
CRDS = {kind.name: kinds.definition(kind) for kind in kinds.KINDS}
# What an API server stores: etcd takes 1.5 MiB of a request.
MOST_BYTES = 1 << 20
# Told by the server alone: what jsonschema has no word for.
DUPLICATES = "Duplicate value"


def schema_of(kind: str) -> dict[str, Any]:
    return CRDS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def walk(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every schema below one, with its path."""
    yield path, schema
    for name, one in schema.get("properties", {}).items():
        yield from walk(one, f"{path}.{name}")
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from walk(schema["additionalProperties"], f"{path}{{}}")


EVERYTHING = [(f"{kind}{path}", one) for kind in CRDS for path, one in walk(schema_of(kind))]
RULES = {one["message"]: one["rule"] for _, schema in EVERYTHING for one in schema.get("x-kubernetes-validations", ())}


def test_the_committed_files_are_those_of_the_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # It takes seconds, and is written twice.
    monkeypatch.setattr(kinds, "printed", functools.cache(kinds.printed))
    assert kinds.main([str(tmp_path)]) == 0
    made = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert {file.name: file.read_text() for file in FOLDER.iterdir()} == made
    made_in_order = [made[f"{kind.plural}.yaml"] for kind in kinds.KINDS]
    kinds.main([])
    assert capsys.readouterr().out == "".join(f"---\n{text}" for text in made_in_order)


@pytest.mark.parametrize("kind", CRDS)
def test_a_file_says_what_the_table_says(kind: str) -> None:
    text = (FOLDER / f"{CRDS[kind]['spec']['names']['plural']}.yaml").read_text()
    assert plain(read(text, "crd")) == CRDS[kind]


@pytest.mark.parametrize("kind", CRDS)
def test_a_definition_fits_into_a_request(kind: str) -> None:
    assert len(json.dumps(CRDS[kind])) < MOST_BYTES


def test_names_and_columns() -> None:
    names = {kind: CRDS[kind]["spec"]["names"] for kind in CRDS}
    assert {kind: one["listKind"] for kind, one in names.items()} == {kind: f"{kind}List" for kind in CRDS}
    assert [one["shortNames"] for one in names.values()] == [["hgbe"], ["hgpol"], ["hgmodel"], ["hgpar"]]
    assert {one["categories"][0] for one in names.values()} == {"headgate"}
    versions = {kind: CRDS[kind]["spec"]["versions"][0] for kind in CRDS}
    columns = {kind: [one["name"] for one in version["additionalPrinterColumns"]] for kind, version in versions.items()}
    assert columns == {
        "GatewayBackend": ["Accepted", "Age"],
        "GatewayPolicy": ["Accepted", "Attached", "Age"],
        "GatewayModel": ["Model Match", "Age"],
        "GatewayParameters": ["Age"],
    }
    assert all(version["subresources"] == {"status": {}} for version in versions.values())
    assert CRDS["GatewayPolicy"]["metadata"]["labels"]["gateway.networking.k8s.io/policy"] == "Direct"


def test_statuses_have_their_limits() -> None:
    status = {kind: schema_of(kind)["properties"]["status"] for kind in CRDS}
    assert status["GatewayBackend"]["properties"]["conditions"]["maxItems"] == 8
    for kind, name in (("GatewayPolicy", "ancestors"), ("GatewayModel", "parents")):
        entries = status[kind]["properties"][name]
        conditions = entries["items"]["properties"]["conditions"]
        assert (entries["maxItems"], conditions["minItems"], conditions["maxItems"]) == (16, 1, 8)
        assert conditions["x-kubernetes-list-map-keys"] == ["type"]


def test_every_text_list_and_map_has_a_limit() -> None:
    found = []
    for path, one in EVERYTHING:
        kind = one.get("type")
        unlimited_text = kind == "string" and not one.keys() & {"maxLength", "enum", "format"}
        unlimited_list = kind == "array" and "maxItems" not in one
        unlimited_map = "additionalProperties" in one and "maxProperties" not in one
        if (unlimited_text or unlimited_list or unlimited_map) and path.count(".") > 1:
            found.append(path)
    assert found == []


def test_schemas_are_structural() -> None:
    """Every node has a type, or says that it has several or any.
    https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
    """
    for path, one in EVERYTHING:
        several = one.get("x-kubernetes-int-or-string") or one.get("x-kubernetes-preserve-unknown-fields")
        assert "type" in one or several, path
        assert not ("properties" in one and "additionalProperties" in one), path
        assert not one.keys() & {"$ref", "definitions", "uniqueItems", "deprecated"}, path
        if "default" in one:
            jsonschema.validate(one["default"], one)
        assert set(one.get("required", ())) <= one.get("properties", {}).keys(), path


def test_every_rule_has_an_example_that_breaks_it() -> None:
    untested = [message for message in RULES if not any(case.message and message.startswith(case.message) for case in REFUSALS)]
    assert untested == []


def test_rules_name_fields_that_there_are() -> None:
    for path, schema in EVERYTHING:
        if "properties" in schema:
            for one in schema.get("x-kubernetes-validations", ()):
                # Of `self.map.field` the first step is looked at.
                for name in re.findall(r"self\.([A-Za-z]\w*)(?!\w|\()", one["rule"]):
                    assert name in schema["properties"], (path, one["rule"])


def faults(base: str, spec: Spec) -> list[str]:
    whole = schema_of(KINDS[base.split("/")[0]])["properties"]["spec"]
    return [error.message for error in jsonschema.Draft202012Validator(whole).iter_errors(spec)]


@pytest.mark.parametrize("base", BASES)
def test_right_examples_fit_the_schema(base: str) -> None:
    assert faults(base, BASES[base]) == []


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: f"{case.base} {' '.join(case.changes)}")
def test_wrong_examples_break_the_schema_or_a_rule(case: Refused) -> None:
    spec = changed(BASES[case.base], case.changes)
    assert spec != BASES[case.base]
    by_rule = any(message.startswith(case.message) for message in RULES)
    assert bool(faults(case.base, spec)) != (by_rule or case.message == DUPLICATES), faults(case.base, spec)


def test_every_default_is_shown_by_an_example() -> None:
    """Those of statuses aside: these are the controller's."""
    said = {(KINDS[one.base.split("/")[0]], one.path.split(".")[-1], str(one.value)) for one in DEFAULTS}
    known = {(name, value) for _, name, value in said}
    missing = {
        (path.rpartition(".")[2], str(one["default"]))
        for path, one in EVERYTHING
        if "default" in one and ".status" not in path
    } - known
    assert missing == set()
