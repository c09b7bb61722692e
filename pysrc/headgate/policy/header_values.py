"""Headers as services of Envoy's protocols give them: `envoy.config.core.v3.HeaderValueOption`."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

from headgate.document.lazy_dataclass import dataclass
from headgate_engine.context.field_names import HOP_BY_HOP
from headgate_engine.context.request import Reply

logger = logging.getLogger("headgate.policy")

# HeaderValueOption.HeaderAppendAction
APPEND, ADD_IF_ABSENT, REPLACE_OR_ADD, REPLACE_IF_PRESENT = range(4)
# How a message ends is the business of the connection.
FRAMING: Final = HOP_BY_HOP | {"content-length"}


@dataclass(frozen=True, slots=True)
class FieldEdit:
    """Something to be done to a field: `action` is a HeaderAppendAction. Name in lower case."""

    action: int
    name: str
    value: str

    @property
    def encoded(self) -> tuple[bytes, bytes]:
        """The field as it is sent. Raises ValueError for a name that is not ASCII."""
        return self.name.encode("ascii"), self.value.encode("utf-8", "surrogateescape")


def usable_edit(edit: FieldEdit) -> bool:
    """Return whether a service may do this to a field: names and values are valid, and framing is left alone."""
    if edit.name in FRAMING:
        logger.debug("the service may not set this field", extra={"field": edit.name})
        return False
    try:
        # The engine's own check.
        Reply(200, b"", (edit.encoded,))
    except ValueError:
        logger.debug("the service has set a field that is not valid", extra={"field": edit.name})
        return False
    return True


def field_edits(options: Iterable[Any], usual: int) -> Iterable[FieldEdit]:
    """Yield what HeaderValueOptions want. `options`: the messages. `usual`: what is done where they do not say."""
    for one in options:
        if one.HasField("append"):
            action = APPEND if one.append.value else REPLACE_OR_ADD
        else:
            action = one.append_action or usual
        yield value_edit(one.header, action)


def value_edit(header: Any, action: int) -> FieldEdit:
    """Return what is to be done with a HeaderValue."""
    return FieldEdit(action, header.key.lower(), header.raw_value.decode("utf-8", "surrogateescape") or header.value)


