"""The scalars of the file."""

from __future__ import annotations

from typing import Any, Final

from headgate.config.shape.vocabulary import (
    ListOf,
    MapOf,
    Object,
    Scalar,
    Shape,
    Union,
    extend,
    maybe,
    optional,
    required,
)
from headgate.document import fields
from headgate.document.secret import Secret


def _between(low: int, high: int) -> Any:
    def parse(number: int) -> int:
        if not low <= number <= high:
            raise ValueError(f"out of range {low}..{high}")
        return number

    return parse


def unsigned(name: str, high: int, low: int = 0) -> Scalar:
    """Return the scalar of an integer `low`..`high`."""
    return Scalar(name, (int,), _between(low, high), {"minimum": low, "maximum": high})


STRING: Final = Scalar("String", (str,))
BOOL: Final = Scalar("Bool", (bool,))
NUMBER: Final = Scalar("Number", (int, float))
NULL: Final = Scalar("Null", (type(None),))
UINT8: Final = unsigned("Uint8", 2**8 - 1)
UINT16: Final = unsigned("Uint16", 2**16 - 1)
UINT32: Final = unsigned("Uint32", 2**32 - 1)
BYTE_SIZE: Final = Scalar(
    "ByteSize",
    (int, str),
    fields.bytes_of,
    {"minimum": 0, "maximum": fields.MAX_BYTE_SIZE, "pattern": fields.BYTE_SIZE_PATTERN},
)
UINT64: Final = unsigned("Uint64", 2**63 - 1)
POSITIVE32: Final = unsigned("Positive32", 2**32 - 1, 1)
INT32: Final = unsigned("Int32", 2**31 - 1, -(2**31))
STATUS: Final = unsigned("Status", 65_535, 1)
PORT: Final = Scalar("Port", (int,), fields.port, {"minimum": 1, "maximum": 65_535})
WORD_OR_INT: Final = Scalar("TextOrInteger", (str, int))
SAMPLING: Final = Scalar("Sampling", (str, int, float, bool))

_DURATION_FACETS: Final = {"pattern": fields.DURATION_PATTERN, "maxLength": 64}
DURATION: Final = Scalar("Duration", (str,), fields.duration_ms, _DURATION_FACETS)
DURATION_NS: Final = Scalar("Interval", (str,), fields.duration_ns, _DURATION_FACETS)
CEL: Final = Scalar("Expression", (str,), fields.cel, {"minLength": 1, "maxLength": fields.MAX_CEL_CHARS})
HEADER_NAME: Final = Scalar("HeaderName", (str,), fields.header_name, {"pattern": fields.HEADER_NAME_PATTERN})
HEADER_MATCH_NAME: Final = Scalar("HeaderMatchName", (str,), fields.header_or_pseudo)
HEADER_VALUE: Final = Scalar("HeaderValue", (str,), fields.header_value)
HOSTNAME: Final = Scalar("Hostname", (str,), fields.hostname)
REGEX: Final = Scalar("Regex", (str,), fields.pattern)
TARGET: Final = Scalar("HostPort", (str,), fields.target)
TARGET_URL: Final = Scalar("HostUrl", (str,), fields.host_url)
GRPC_METHOD: Final = Scalar("GrpcMethod", (str,), fields.grpc_method, {"pattern": fields.GRPC_METHOD_PATTERN})
URL: Final = Scalar("Url", (str,), fields.url)
ORIGIN: Final = Scalar("Origin", (str,), fields.origin)
SECRET: Final = Scalar("SecretText", (str,), fields.secret, {"writeOnly": True}, secret=True)
# A secret that goes nowhere yet: nothing is known about its form.
HIDDEN: Final = Scalar("HiddenText", (str,), Secret, {"writeOnly": True}, secret=True)

# The name of a file, or a private key in PEM, which has several lines.
KEY_OR_FILE: Final = Scalar("KeyOrFile", (str,), secret_lines=True)

STRINGS: Final = ListOf(STRING)
STRING_MAP: Final = MapOf(STRING)
CEL_MAP: Final = MapOf(CEL)

FILE: Final = Object("FileReference", {"file": required(STRING)})
FILE_OR_INLINE: Final = Union("FileOrInline", (STRING, FILE))
FILE_OR_SECRET: Final = Union("FileOrSecret", (SECRET, FILE))
FILE_OR_HIDDEN: Final = Union("FileOrHidden", (HIDDEN, FILE))
DOCUMENT: Final = Object(
    "DocumentReference", {"file": optional(STRING), "url": optional(STRING)}, ("file", "url")
)
FILE_INLINE_OR_REMOTE: Final = Union("FileInlineOrRemote", (STRING, DOCUMENT))
BYTES: Final = Union("Bytes", (STRING, ListOf(UINT8)))


def nothing(name: str) -> Object:
    """Return an object without fields, written `{}`."""
    return Object(name, {})


SERVICE: Final = Object("ServiceReference", {"name": required(STRING), "port": required(UINT16)})
TARGET_KEYS: Final = ("service", "host", "backend")
TARGET_FIELDS: Final = {
    "service": optional(SERVICE),
    "host": optional(TARGET),
    "backend": optional(STRING),
}
TARGET_REFERENCE: Final = Object("TargetReference", TARGET_FIELDS, TARGET_KEYS)


def conditional(name: str, shape: Object) -> Shape:
    """Return the form with conditions of a policy: a list of the policy's fields with a `condition` each."""
    entry = extend(f"{name}WithCondition", shape, {"condition": maybe(CEL)})
    return Object(f"{name}Conditional", {"conditional": required(ListOf(entry, least=1, most=64))})
