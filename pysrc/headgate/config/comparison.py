"""Tells whether two processes have read the same configuration, secrets included, without showing any.

Who asks names a salt, and a slow digest over what it has read. The gateway answers yes or no, so that nothing of a
secret leaves it, and each guess costs it a twentieth of a second.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Final

from headgate.ir.digest import spelled
from headgate.ir.gateway import Gateway

FORM: Final = re.compile(r"([0-9a-f]{32})\.([0-9a-f]{64})")
# RFC 7914: 16 MiB and 50 ms.
COST, BLOCKS, LANES, BYTES = 1 << 14, 8, 1, 32


def proof(gateway: Gateway, salt: str) -> str:
    """Return `SALT.DIGEST` for a salt of 32 hexadecimal digits."""
    text = spelled(
        gateway.binds, gateway.backends, gateway.policies, gateway.frontend, gateway.process, gateway.services,
        gateway.workloads, gateway.hbone, gateway.virtual_keys,
    )  # fmt: skip
    digest = hashlib.scrypt(text.encode(), salt=bytes.fromhex(salt), n=COST, r=BLOCKS, p=LANES, dklen=BYTES)
    return f"{salt}.{digest.hex()}"


def proves(gateway: Gateway, told: str) -> bool:
    """Tell whether `told` is what proof() returns for this configuration. Raises ValueError if it has another form."""
    found = FORM.fullmatch(told)
    if found is None:
        raise ValueError("expected a salt of 32 and a digest of 64 hexadecimal digits with a full stop between them")
    return hmac.compare_digest(proof(gateway, found[1]), told)
