"""What models cost."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceCatalog:
    """The merged catalogs of `config.modelCatalog`.

    `document` is the text of headgate.dialect.llm.catalog.compact(), None when no source could be read. `version`
    identifies its prices. `files`: absolute paths of those that were read.
    `base`: the first that is named, whether it is there or not; None: none is.
    """

    document: str | None
    version: str = ""
    files: tuple[str, ...] = ()
    base: str | None = None
