"""Changes that an external processor makes to heads: `envoy.service.ext_proc.v3.HeaderMutation`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from headgate.policy.header_values import (
    ADD_IF_ABSENT,
    APPEND,
    FRAMING,
    REPLACE_IF_PRESENT,
    REPLACE_OR_ADD,
    FieldEdit,
    field_edits,
    usable_edit,
)
from headgate_engine.context.headers import MessageHead

logger = logging.getLogger("headgate.processing")

AUTHORITY: Final = frozenset((":authority", "host"))


def edit_request(head: MessageHead, mutation: Any) -> None:
    """Apply the changes to the head of a request. What is not allowed or not valid is left out.

    A value replaces those that are there, unless the processor says otherwise.
    """
    _remove(head, mutation)
    for edit in field_edits(mutation.set_headers, REPLACE_OR_ADD):
        if edit.name.startswith(":") or edit.name == "host":
            _edit_start(head, edit)
        else:
            _edit(head, edit)


def edit_response(head: MessageHead, mutation: Any, set_status: Callable[[int], None]) -> None:
    """The same for the head of a response. `set_status` raises ValueError for a status that is none."""
    _remove(head, mutation)
    for edit in field_edits(mutation.set_headers, REPLACE_OR_ADD):
        if edit.name == ":status":
            try:
                set_status(int(edit.value))
            except ValueError:
                logger.debug("the processor has set a status that is not valid")
        else:
            _edit(head, edit)


def edit_trailers(head: MessageHead, mutation: Any) -> None:
    """The same for trailers."""
    _remove(head, mutation)
    for edit in field_edits(mutation.set_headers, REPLACE_OR_ADD):
        _edit(head, edit)


def _remove(head: MessageHead, mutation: Any) -> None:
    for name in mutation.remove_headers:
        lower = name.lower()
        if lower.isascii() and lower not in FRAMING and lower != "host":
            head.remove(lower)


def _edit(head: MessageHead, edit: FieldEdit) -> None:
    if edit.name == "host" or not usable_edit(edit):
        return
    there = edit.action != APPEND and head.get(edit.name) is not None
    if edit.action == (ADD_IF_ABSENT if there else REPLACE_IF_PRESENT):
        return
    if there:
        head.set(edit.name, edit.value)
    else:
        head.add(edit.name, edit.value)


def _edit_start(head: MessageHead, edit: FieldEdit) -> None:
    """Change the start line: its method, path or authority. The field `host` is left alone."""
    method, target, authority = head.method, head.target, head.authority
    value = edit.value
    if edit.name == ":method" and value and value != "CONNECT":
        method = value
    elif edit.name == ":path" and value.startswith("/") and "#" not in value:
        target = value
    elif edit.name == ":authority" and value and not set(value) & set("/?#@"):
        authority = value
    else:
        logger.debug("the processor may not set this", extra={"field": edit.name})
        return
    try:
        head.set_request(method, target, authority)
    except ValueError:
        logger.debug("the processor has set what is not valid", extra={"field": edit.name})
