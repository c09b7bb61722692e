"""Which names of fields and parameters are those of credentials, and URLs of the configuration without theirs."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from headgate.document.secret import REDACTED
from headgate_engine.context.redact import CREDENTIALS

# Names of headers, of fields of bodies and of parameters whose values are credentials.
_NAME: Final = re.compile(
    r"(proxy-)?authorization|(set-)?cookie2?|.*passw(or)?d|.*secret|.*credentials?|.*api[-_]?key|(.*[-_])?token", re.I
)
# Parameters of URLs that are configured, and options of commands, have shorter names.
_OPTION: Final = re.compile(r"(.*[-_])?(key|pat|auth|bearer|pass|pwd)", re.I)
_URL: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:/)?/[^\s\x00-\x1f]*")
_QUOTED: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:/)?/[^\s'\"]*")
# A password, or a token in place of the user's name.
_USER: Final = re.compile(r"(?<=://)(?:[^/\s:@?#]*:[^/\s@?#]+|[^/\s:@?#]{20,})(?=@)")
_VARIABLE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[A-Za-z_][A-Za-z0-9_]*")


def names_credential(name: str) -> bool:
    """Return True if a header, field or parameter of that name holds a credential."""
    return _NAME.fullmatch(name) is not None


def names_option(name: str) -> bool:
    """Return True if an option of a command holds a credential."""
    return names_credential(name) or _OPTION.fullmatch(name) is not None


def shown_url(text: str) -> str:
    """Return a URL, or a path, of the configuration without the credentials in its query and its user. Other texts are
    returned as they are; so are references to variables."""
    if _URL.fullmatch(text) is None:
        return text
    start, mark, fragment = text.partition("#")
    start = _USER.sub(REDACTED, start)
    path, question, query = start.partition("?")
    if not question:
        return f"{start}{mark}{fragment}"
    shown = "&".join(_shown_parameter(part) for part in query.split("&"))
    return f"{path}?{shown}{mark}{fragment}"


def _shown_parameter(part: str) -> str:
    """Return what stands between two `&` as it may be shown. A `;` begins a parameter for some servers only."""
    start = 0
    for piece in part.split(";"):
        name, equals, _ = piece.partition("=")
        plain = unquote(unquote(name.rpartition("?")[2]))
        value = start + len(name) + 1
        if equals and part[value:] and (names_option(plain) or plain.lower() in CREDENTIALS):
            return part if _VARIABLE.fullmatch(part, value) else f"{part[:value]}{REDACTED}"
        start += len(piece) + 1
    return part


def shown_message(text: str) -> str:
    """Return a message without the credentials of URLs and paths that it quotes."""
    return _QUOTED.sub(lambda found: shown_url(found[0]), text)


def is_marked_url(text: str) -> bool:
    """Return True if something was hidden in a URL."""
    return REDACTED in text and _URL.fullmatch(text) is not None and shown_url(text.replace(REDACTED, "x" * 20)) == text
