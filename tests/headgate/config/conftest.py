"""Shared ground of the config tests: loading texts, certificates, and documents made from the shape."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ir_golden
import pytest
import trustme

from headgate.config.load import TextSource, load
from headgate.config.shape.vocabulary import (
    Anything,
    Case,
    ListOf,
    MapOf,
    Object,
    ObjectField,
    Ref,
    Scalar,
    Shape,
    Union,
    WordChoice,
)
from headgate.errors import ConfigErrors
from headgate.ir.gateway import Gateway

SAMPLES: dict[str, tuple[Any, ...]] = {
    "String": ("abc", "x-y"),
    "HiddenText": ("hidden",),
    "SecretText": ("sk-1",),
    "DatabaseUrl": ("sqlite:///var/lib/headgate/log.db", "postgres://log:hidden@db.test/log"),
    "SessionKey": ("ab" * 32,),
    "Duration": ("5s", "300ms", "1m30s"),
    "Interval": ("1s", "2m"),
    "Expression": ("request.path", '"text"'),
    "HeaderName": ("x-a", "Accept"),
    "HeaderMatchName": ("x-a", ":path"),
    "HeaderValue": ("v", "a b"),
    "ModifiedHeader": ("x-a", "x-b"),
    "Hostname": ("a.test", "*.b.test"),
    "Regex": ("/a.*", "[a-z]+"),
    "HostPort": ("127.0.0.1:9000", "a.test:80"),
    "DestinationHost": ("a.test", "*.b.test", "10.0.0.1"),
    "Network": ("10.0.0.0/8", "fd00::/8"),
    "NameServer": ("10.0.0.53", "[::1]:5353"),
    "KeyOrFile": ("/nowhere.key", "a.key"),
    "HostUrl": ("http://a.test:90", "https://a.test/"),
    "GrpcMethod": ("/a.v1.B/C",),
    "Url": ("http://a.test/v1",),
    "Origin": ("http://localhost:3000", "https://a.test"),
    "Path": ("/a", "/b/c"),
    "UpstreamPath": ("/v2",),
    "Method": ("GET", "POST"),
    "ModelName": ("*", "gpt-*", "m"),
    "TextOrInteger": (2, "50%"),
    "Sampling": (True, 0.5, 1, "true"),
    "Dollars": (5, 0.25, "0.000000000001"),
    "Timestamp": ("2027-01-31T12:00:00Z", "2027-01-31T12:00:00+02:00"),
    "Null": (None,),
    "Bool": (True, False),
    "Number": (0.5, 1),
}
_WRONG = (None, True, 17, -1, "str", [], {}, ["a"], {"a": 1}, 1.5, 10**30)
_DEEP = 12


class Documents:
    """Makes documents that a shape admits, and broken ones."""

    def __init__(self, draw: random.Random, secret: str | None = None) -> None:
        self.draw = draw
        self.secret = secret

    def of(self, shape: Shape, depth: int = 0) -> Any:
        match shape:
            case Ref():
                return self.of(shape.target(), depth)
            case Scalar():
                if shape.secret and self.secret is not None:
                    return self.secret
                if shape.name in SAMPLES:
                    return self.draw.choice(SAMPLES[shape.name])
                low = shape.facets["minimum"]
                return self.draw.randint(low, min(low + 1000, shape.facets["maximum"]))
            case WordChoice():
                return self.draw.choice(sorted(shape.spellings()))
            case Anything():
                return self.draw.choice([None, 1, "a", [1], {"k": {"l": 2}}])
            case ListOf():
                return self.list(shape, depth)
            case MapOf():
                size = self.draw.choice([0, 1, 2])
                return {f"k{number}": self.of(shape.item, depth + 1) for number in range(size)}
            case Union():
                case = self.draw.choice(shape.cases)
                return self.of(case.shape if isinstance(case, Case) else case, depth)
            case Object():
                return self.object(shape, depth)

    def list(self, shape: ListOf, depth: int) -> list[Any]:
        size = max(shape.least, self.draw.choice([0, 1, 1, 2]) if depth < _DEEP else 0)
        items = [self.of(shape.item, depth + 1) for _ in range(size)]
        if shape.unique:
            items = [json.loads(text) for text in dict.fromkeys(json.dumps(item) for item in items)]
        return items

    def object(self, shape: Object, depth: int) -> dict[str, Any]:
        share = 0.4 if depth < 2 else 0.3 if depth < _DEEP else 0.0
        picked = {
            name for name, entry in shape.fields.items() if entry.required or self.draw.random() < share
        }
        if shape.one_of:
            picked -= set(shape.one_of)
            picked.add(self.draw.choice(shape.one_of))
        elif shape.any_of and not picked & set(shape.any_of):
            picked.add(shape.any_of[0])
        for one, other in shape.apart:
            if one in picked:
                picked.discard(other)
        return {name: self.field(shape.fields[name], depth) for name in shape.fields if name in picked}

    def field(self, entry: ObjectField, depth: int) -> Any:
        if entry.nullable and self.draw.random() < 0.1:
            return None
        return self.of(entry.shape, depth + 1)

    def broken(self, document: Any) -> Any:
        """Return a copy with one change somewhere: a field more, a field less, or another value."""
        copy = json.loads(json.dumps(document))
        places: list[tuple[Any, Any]] = [({"": copy}, "")]
        pending = [copy]
        while pending:
            value = pending.pop()
            for key in list(value) if isinstance(value, dict) else range(len(value)):
                places.append((value, key))
                if isinstance(value[key], dict | list):
                    pending.append(value[key])
        holder, key = self.draw.choice(places)
        kind = self.draw.randint(0, 2)
        value = holder[key]
        if kind == 0 and isinstance(value, dict):
            value["zzz"] = 1
        elif kind == 1 and isinstance(value, dict) and value:
            value.pop(self.draw.choice(sorted(value)))
        elif holder is not None and key != "":
            holder[key] = self.draw.choice(_WRONG)
        return copy


@pytest.fixture(scope="session")
def documents() -> Callable[..., Documents]:
    return Documents


@pytest.fixture(scope="session")
def ir_json() -> Callable[[Any], Any]:
    return ir_golden.ir_json


@pytest.fixture(scope="session")
def loaded() -> Callable[..., Gateway]:
    """Load a text and return its gateway."""

    def run(text: str, environ: Mapping[str, str] | None = None) -> Gateway:
        return load(TextSource(text, "c.yaml"), environ=environ or {}).gateway

    return run


@pytest.fixture(scope="session")
def faults() -> Callable[..., list[str]]:
    """Load a text that has faults and return them as lines, without the file."""

    def run(text: str, environ: Mapping[str, str] | None = None) -> list[str]:
        try:
            load(TextSource(text, "c"), environ=environ or {})
        except ConfigErrors as error:
            return [str(fault).replace(" (c:", " (") for fault in error.errors]
        raise AssertionError("the document was accepted")

    return run


@pytest.fixture(scope="session")
def warnings() -> Callable[..., list[str]]:
    """Load a text and return what is warned of."""

    def run(text: str) -> list[str]:
        return list(load(TextSource(text, "c.yaml"), environ={}).warnings)

    return run


class Certificates:
    """A CA and two leaf certificates in a folder."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        self.root = folder / "root.pem"
        authority.cert_pem.write_to_path(self.root)
        for name in ("a", "b"):
            leaf = authority.issue_cert(f"{name}.test")
            chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
            (folder / f"{name}.crt").write_bytes(chain)
            (folder / f"{name}.key").write_bytes(leaf.private_key_pem.bytes())
        self.folder = folder


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def regold() -> bool:
    """Whether golden files are written anew: set HEADGATE_REGOLD=1 and review the difference."""
    return os.environ.get("HEADGATE_REGOLD") == "1"
