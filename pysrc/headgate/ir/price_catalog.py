"""Prices of models."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceCatalog:
    """The merged price catalogs of `config.modelCatalog`.

    `document` is the result of headgate.dialect.llm.catalog.compact(), None if no source could be read. `version`
    identifies the prices. `files` are the absolute paths of the files that were read. `base` is the path of the first
    configured file, whether or not it exists, None if no file is configured.
    """

    document: str | None
    version: str = ""
    files: tuple[str, ...] = ()
    base: str | None = None
