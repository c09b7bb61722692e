"""Each field of the file has a form among the resources that comes to the same, or a line that says why not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from field_samples import JWKS, Chain, chains, objects, sample

from headgate.cluster.convert import fields
from headgate.cluster.convert.file import to_resources
from headgate.cluster.convert.gateway import GatewayNames
from headgate.errors import ConfigErrors

PAGE = Path(__file__).parents[4] / "docs" / "cluster-fields.md"
WAYS = chains(12)
TOLD = fields.REASONS
CONFIG = ("Headgate", "config")
ENVIRON = {"OIDC_COOKIE_SECRET": "5a" * 32}
# The loader takes no configuration with them.
NEVER = {"TargetLocation.expression"}
BY_OBJECT: dict[str, list[str]] = {}
for every in fields.fields():
    BY_OBJECT.setdefault(every.partition(".")[0], []).append(every)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that samples name."""
    found = tmp_path_factory.mktemp("files")
    authority = trustme.CA()
    issued = authority.issue_cert("a.test", key_type=trustme.KeyType.ECDSA)
    (found / "cert.pem").write_bytes(b"".join(one.bytes() for one in issued.cert_chain_pems))
    (found / "key.pem").write_bytes(issued.private_key_pem.bytes())
    authority.cert_pem.write_to_path(found / "ca.pem")
    other = authority.issue_cert("b.test", key_type=trustme.KeyType.ECDSA)
    (found / "other.pem").write_bytes(b"".join(one.bytes() for one in other.cert_chain_pems))
    (found / "other-key.pem").write_bytes(other.private_key_pem.bytes())
    (found / "jwks.json").write_text(JWKS)
    (found / "catalog.json").write_text('{"providers": {}}')
    for name in ("abc", "text"):
        (found / name).write_text("abc")
    return found


def ways(name: str) -> Iterator[Chain]:
    """Yield the ways to a field on which nothing is without a form, the field itself aside."""
    shape, _, field = name.partition(".")
    known = WAYS.get(shape, [])
    # `config` becomes `rawConfig` as it is, whatever stands there.
    for chain in [one for one in known if one[:1] != (CONFIG,)] or known:
        if not any(f"{step}.{one}" in TOLD for step, one in chain):
            yield (*chain, (shape, field))


def losses(chain: Chain, folder: Path) -> list[str] | None:
    """Return what a sample loses; None if the loader does not take it."""
    path = folder / "config.yaml"
    path.write_text(json.dumps(sample(chain)))
    try:
        found = to_resources(str(path), GatewayNames(), ENVIRON)
    except ConfigErrors:
        return None
    return [one.told("config.yaml") for one in found.losses]


@pytest.mark.parametrize("shape", BY_OBJECT)
def test_a_field_comes_to_the_same_or_is_told(shape: str, folder: Path) -> None:
    for name in BY_OBJECT[shape]:
        tried: list[list[str]] = []
        for chain in ways(name):
            found = losses(chain, folder)
            tried += [] if found is None else [found]
            if found == [] and name not in fields.REASONS:
                break
        if not tried:
            assert name in NEVER or not list(ways(name)), f"{name}: no sample of it is taken"
        elif name in fields.REASONS:
            assert all(tried), f"{name} has a form: REASONS says that it has none"
        else:
            assert [] in tried, f"{name}: {tried[0]}"


def test_the_tables_name_fields_of_the_file() -> None:
    known = set(fields.fields())
    assert TOLD.keys() - known == set()
    assert fields.REASONS.keys() & fields.PARTLY.keys() == set()
    assert set(objects()) >= set(BY_OBJECT)


def test_the_page_is_that_of_the_tables() -> None:
    assert PAGE.read_text() == fields.page()


def test_a_reason_is_that_of_the_table() -> None:
    assert fields.reason("Retry", "budget") == fields.REASONS["Retry.budget"]
    assert fields.reason("BackendPolicies", "requestRedirect") == fields.PARTLY["BackendPolicies.requestRedirect"]
    assert fields.reason("Object", "field") == "no resource has such a field"
