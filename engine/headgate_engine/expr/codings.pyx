"""base64, percent and form encoding, digests and token payloads."""

import base64
import binascii
import hashlib
import json
import urllib.parse

from headgate_engine.expr.functions import from_json
from headgate_engine.expr.values import EvaluationError, no_overload

# Characters besides letters and digits that url.encode() does not escape.
UNRESERVED = "-._~^`"
# Padding of base64 by its length modulo 4. A remainder of 1 is invalid, so it gets none.
PADDING = (b"", b"", b"==", b"=")


def _raw(value):
    if isinstance(value, str):
        return value.encode("utf-8")
    if type(value) is bytes:
        return value
    raise no_overload("a string or bytes is wanted")


def _base64_encode(value):
    return base64.b64encode(_raw(value)).decode()


def _base64_decode(value):
    text = _raw(value).rstrip(b"=")
    try:
        found = base64.b64decode(text + PADDING[len(text) % 4], validate=True)
    except (binascii.Error, ValueError):
        raise EvaluationError("not base64") from None
    if base64.b64encode(found).rstrip(b"=") != text:
        raise EvaluationError("not base64: stray bits")
    return found


def _url_encode(value):
    return urllib.parse.quote(_raw(value), safe=UNRESERVED)


def _url_decode(value):
    try:
        return urllib.parse.unquote_to_bytes(_raw(value)).decode("utf-8")
    except UnicodeDecodeError:
        raise EvaluationError("not UTF-8") from None


def _form_decode(value):
    found = {}
    try:
        pairs = urllib.parse.parse_qsl(_raw(value).decode("utf-8"), keep_blank_values=True, errors="strict")
    except ValueError:
        raise EvaluationError("not a form") from None
    for name, text in pairs:
        known = found.get(name)
        if known is None:
            found[name] = text
        elif isinstance(known, list):
            known.append(text)
        else:
            found[name] = [known, text]
    return found


def _form_encode(value):
    if not isinstance(value, dict):
        raise no_overload("form.encode")
    pairs = []
    for name in sorted(value, key=str):
        items = value[name]
        for item in items if isinstance(items, (list, tuple)) else [items]:
            if item is not None:
                pairs.append((name, _form_text(item)))
    return urllib.parse.urlencode(pairs)


def _form_text(value):
    if type(value) is bool:
        return "true" if value else "false"
    if isinstance(value, (str, bytes, int, float)):
        return value
    raise no_overload("form.encode")


def _digest(name):
    return lambda value: hashlib.new(name, _raw(value), usedforsecurity=False).hexdigest()


def _unvalidated_payload(value):
    """Return the claims of a compact JWT without verification: for logs and keys, never for decisions."""
    if not isinstance(value, str):
        raise no_overload("unvalidatedJwtPayload")
    parts = value.split(".")
    if len(parts) != 3:
        raise EvaluationError("a token has three parts")
    text = parts[1].rstrip("=")
    try:
        raw = text.encode("ascii")
        return from_json(json.loads(base64.b64decode(raw + PADDING[len(raw) % 4], altchars=b"-_", validate=True)))
    except (ValueError, RecursionError):
        raise EvaluationError("the payload is not base64url JSON") from None


FUNCTIONS = {
    ("base64.encode", False): (_base64_encode, 1, 1),
    ("base64.decode", False): (_base64_decode, 1, 1),
    ("base64Encode", False): (_base64_encode, 1, 1),
    ("base64Decode", False): (_base64_decode, 1, 1),
    ("base64Encode", True): (_base64_encode, 0, 0),
    ("base64Decode", True): (_base64_decode, 0, 0),
    ("url.encode", False): (_url_encode, 1, 1),
    ("url.decode", False): (_url_decode, 1, 1),
    ("form.encode", False): (_form_encode, 1, 1),
    ("form.decode", False): (_form_decode, 1, 1),
    ("sha1.encode", False): (_digest("sha1"), 1, 1),
    ("sha256.encode", False): (_digest("sha256"), 1, 1),
    ("md5.encode", False): (_digest("md5"), 1, 1),
    ("unvalidatedJwtPayload", False): (_unvalidated_payload, 1, 1),
}
