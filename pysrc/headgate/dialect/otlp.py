"""What a collector answers to an export, and what stands around the parts of an export.

Declared here: the modules of the package opentelemetry-proto and those of the same names in xds-protos, another extra,
overwrite each other. Source: opentelemetry/proto/collector/*/v1 in https://github.com/open-telemetry/opentelemetry-proto.
"""

from __future__ import annotations

from typing import Final

from google.protobuf.message import DecodeError

from headgate.dialect.protobuf import MessageField, classes_of, file_of

_CLASSES: Final = classes_of(
    file_of(
        "headgate/otlp.proto",
        "headgate.otlp",
        {
            "PartialSuccess": (MessageField(1, "rejected", "int64"), MessageField(2, "error_message", "string")),
            "ExportAnswer": (MessageField(1, "partial_success", "PartialSuccess"),),
            "Scope": (MessageField(1, "name", "string"), MessageField(2, "version", "string")),
        },
        {},
    )
)


def rejected(answer: bytes) -> tuple[int, str]:
    """Return how many parts of an export the collector has rejected, and what it says. An unreadable answer rejects
    none."""
    try:
        partial = _CLASSES["ExportAnswer"].FromString(answer).partial_success
    except DecodeError:
        return 0, ""
    return max(int(partial.rejected), 0), str(partial.error_message)


def scope(name: str, version: str) -> bytes:
    """Return an InstrumentationScope."""
    return bytes(_CLASSES["Scope"](name=name, version=version).SerializeToString())
