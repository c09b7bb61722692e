"""Password files of htpasswd with MD5 (apr1), bcrypt, crypt and SHA-1 hashes. Plain-text passwords are not accepted.

Source: https://httpd.apache.org/docs/current/misc/password_encryptions.html.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from passlib.context import CryptContext

SCHEMES: Final = (
    "bcrypt", "apr_md5_crypt", "md5_crypt", "sha512_crypt", "sha256_crypt", "ldap_sha1", "des_crypt",
)  # fmt: skip
MAX_USERS: Final = 256


@cache
def _hashes() -> CryptContext:
    from passlib.context import CryptContext  # takes 9 MB, so it is imported only when passwords are configured

    return CryptContext(schemes=list(SCHEMES))


def parse_htpasswd(text: str) -> dict[str, str]:
    """Return the password hashes by user name. Raises ValueError, with the line number, for a malformed entry."""
    users: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, colon, digest = line.partition(":")
        digest = digest.partition(":")[0]
        if not colon or not name:
            raise ValueError(f"line {number}: not user:hash")
        if _hashes().identify(digest) is None:
            raise ValueError(f"line {number}: not a hash of a known kind (MD5, bcrypt, crypt, SHA-1)")
        if name in users:
            raise ValueError(f"line {number}: user {name!r} is defined twice")
        users[name] = digest
    if not users:
        raise ValueError("there are no users")
    if len(users) > MAX_USERS:
        raise ValueError(f"more than {MAX_USERS} users")
    return users


def check_password(users: dict[str, str], name: str, password: str) -> bool:
    """Return whether the password is that of the user. The hash makes this slow on purpose.

    The password of an unknown user is compared with the hash of another one, always the same, so that the time does not
    tell which users there are, whatever the schemes and costs of the file.
    """
    digest = users.get(name)
    if digest is None:
        others = list(users.values())
        stand_in = others[hash(name) % len(others)]
    try:
        fits: bool = _hashes().verify(password, stand_in if digest is None else digest)
    except (ValueError, TypeError):
        return False
    return fits and digest is not None
