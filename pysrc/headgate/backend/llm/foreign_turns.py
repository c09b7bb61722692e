"""Turns of other vendors in requests that need no translation, with the engine's interface: bytes in, bytes out."""

from __future__ import annotations

from functools import partial
from typing import Any

from headgate.dialect.llm import history, idents
from headgate_engine.llm.foreign import ForeignHistory
from headgate_engine.llm.translate.readers import Garbage
from headgate_engine.llm.translate.sliced import SLICE, dump_sliced, load_sliced
from headgate_engine.llm.translate.writers import dump_json


def foreign_history(client: str, vendor: str) -> ForeignHistory | None:
    """Return what makes histories fit for a vendor that speaks the client's format, None for other formats."""
    if client == "converse":
        return converse_history(vendor, claude=True)
    if client not in history.CLEAN:
        return None
    clean = partial(cleaned, history.CLEAN[client], vendor)
    ids = idents.RESPONSES if client == "responses" else idents.of_completions(vendor)
    strict = client == "completions" and vendor in history.STRICT
    return ForeignHistory(client, clean, longest=ids.longest, strict=strict, any_id=ids.exact)


def converse_history(vendor: str, claude: bool) -> ForeignHistory:
    """Return the same for Bedrock's Converse. `claude`: the model wants thoughts to be signed."""
    clean = partial(cleaned, partial(history.converse, claude=claude), vendor)
    return ForeignHistory("converse", clean, strict=claude)


def cleaned(clean: history.Clean, vendor: str, body: bytes) -> bytes:
    """Return the body as the vendor takes it: the same bytes if nothing has to change, or if it is not understood."""
    try:
        told: Any = load_sliced(body)
        made = clean(told, vendor) if isinstance(told, dict) else told
        if made == told:
            return body
        return dump_json(made) if len(body) <= SLICE else dump_sliced(made)
    except (Garbage, ValueError, RecursionError):
        return body
