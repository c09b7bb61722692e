"""What all parts of a conversion from the file share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from headgate.cluster.convert.losses import Losses
from headgate.cluster.convert.objects import Objects
from headgate.cluster.convert.said import SaidMap
from headgate.cluster.resources.shapes import spelled
from headgate.cluster.translate.fragments import Json

_PEM: Final = "-----BEGIN "


@dataclass(frozen=True)
class Conversion:
    """`folder`: where files are that the configuration names. `namespace`: of the objects that are made next. `about`:
    begins the names of those that have none in the file. `backends`: named backends of the file by name, with their
    objects' names; `home`: the namespace that these are in. `models`: the `llm` of named backends by their names."""

    folder: Path
    namespace: str
    objects: Objects = field(default_factory=Objects)
    losses: Losses = field(default_factory=Losses)
    about: str = "gateway"
    backends: dict[str, str] = field(default_factory=dict)
    hosts: dict[str, SaidMap] = field(default_factory=dict)
    models: dict[str, SaidMap] = field(default_factory=dict)
    home: str = ""

    def named(self, about: str, namespace: str = "") -> Conversion:
        """Return the same for objects of another name, and of another namespace unless that is empty."""
        return replace(self, about=about, namespace=namespace or self.namespace)

    def text(self, value: Any) -> str:
        """Return a text, or that of the file which `{file: path}` names."""
        if not isinstance(value, dict):
            return str(value)
        beside = self.folder / value["file"]
        return (beside if beside.exists() else Path(value["file"])).read_text(encoding="utf-8")

    def pem(self, value: str) -> str:
        """Return a text in PEM, or that of the file which is named."""
        return value if value.lstrip().startswith(_PEM) else self.text({"file": value})

    def secret_ref(self, value: Any, key: str) -> Json:
        """Return a reference to a new Secret with a credential as its entry `key`."""
        text = self.text(value).rstrip("\r\n")
        return {"name": self.objects.secret(self.namespace, self.about, {key: text}), "key": key}


def renamed(value: SaidMap, names: dict[str, str], losses: Losses) -> Json:
    """Return fields under the names of resources; others are lost."""
    losses.rest(value, *names)
    return {theirs: value[ours] for ours, theirs in names.items() if ours in value}


def word(text: str) -> str:
    """Return a word of the file as resources spell it."""
    return spelled(text)


def spelled_words(value: Json, *names: str) -> Json:
    """Return a map whose words of enums are spelled as resources do."""
    return {name: word(one) if name in names else one for name, one in value.items()}


def pairs(value: dict[str, Any], name: str = "name", of: str = "value") -> list[Json]:
    """Return a map as a list of names with their values."""
    return [{name: key, of: one} for key, one in value.items()]
