"""The mode `dynamicCa` of listeners: the authority is checked, and the bounds of what it makes are read."""

from __future__ import annotations

from typing import Final, NamedTuple

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.document import fields
from headgate.document.secret import Secret
from headgate.errors import Problem

TTL: Final = "DYNAMIC_CA_CERT_CACHE_TTL"
CAPACITY: Final = "DYNAMIC_CA_CERT_CACHE_CAPACITY"
# A certificate holds 20 KiB of each worker.
MOST: Final = 65_536
LONGEST_MS: Final = 12 * 3_600_000


class Minting(NamedTuple):
    """How long made certificates are kept, in milliseconds, and how many of them."""

    kept_ms: int = 300_000
    most: int = 256


NO_MINTING: Final = Minting()


def minting(context: Context, record: Record, cert_pem: bytes, key: Secret) -> Minting:
    """Return the bounds; report an authority that may not sign certificates of servers."""
    from headgate.crypto.certificate_authority import CertificateAuthority  # loads cryptography

    try:
        CertificateAuthority(cert_pem, key.reveal_bytes(), checked=True)
    except ValueError as error:
        context.fault(Problem.VALUE, record, "cert", str(error))
    return Minting(_variable(context, TTL, NO_MINTING.kept_ms), _variable(context, CAPACITY, NO_MINTING.most))


def _variable(context: Context, name: str, default: int) -> int:
    """Return what an environment variable says: TTL a duration, or a number of seconds; CAPACITY a number."""
    text = context.environ.get(name)
    if not text:
        return default
    digits = text.isascii() and text.isdigit()
    try:
        if name == TTL:
            value, least, most = fields.duration_ms(f"{text}s" if digits else text), 1, LONGEST_MS
        else:
            value, least, most = int(text) if digits else 0, 1, MOST
        if not least <= value <= most:
            raise ValueError("a duration up to 12h" if name == TTL else f"a number 1..{MOST}")
    except ValueError as error:
        context.report.add(Problem.VALUE, "", f"environment variable {name}: {error}")
        return default
    return value
