"""Password files: every kind of hash that htpasswd and openssl write."""

from __future__ import annotations

import subprocess

import pytest
from passlib import hash as kinds

from headgate.crypto.htpasswd import MAX_USERS, check_password, parse_htpasswd

# `htpasswd -nbs ada password`.
KINDS = {"sha1": "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="}


def openssl(option: str) -> str:
    """What `openssl passwd` makes of `password`."""
    command = ["openssl", "passwd", option, "password"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def made() -> dict[str, str]:
    """One hash of each kind; those that openssl does not write by the library's own writer."""
    return {
        "apr1": openssl("-apr1"),
        "md5": openssl("-1"),
        "sha256": openssl("-5"),
        "sha512": openssl("-6"),
        "bcrypt": kinds.bcrypt.using(rounds=4).hash("password"),
        "crypt": kinds.des_crypt.hash("password"),
        "sha1": KINDS["sha1"],
        "bcrypt as htpasswd writes it": kinds.bcrypt.using(rounds=4, ident="2y").hash("password"),
    }


@pytest.mark.parametrize("kind", sorted(made()))
def test_every_kind(kind: str) -> None:
    users = parse_htpasswd(f"# staff\nada:{made()[kind]}\n\n")
    assert check_password(users, "ada", "password")
    assert not check_password(users, "ada", "Password")
    assert not check_password(users, "eve", "password")
    assert not check_password(users, "", "password")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "there are no users"),
        ("# nobody\n\n", "there are no users"),
        ("ada", "line 1: not user:hash"),
        (":" + KINDS["sha1"], "line 1: not user:hash"),
        ("ada:password", "line 1: not a hash of a known kind"),
        ("ada:{PLAIN}x", "line 1: not a hash"),
        (f"ada:{KINDS['sha1']}\nada:{KINDS['sha1']}", "line 2: user 'ada' is defined twice"),
        ("\n".join(f"u{number}:{KINDS['sha1']}" for number in range(MAX_USERS + 1)), f"more than {MAX_USERS}"),
    ],
)
def test_files_that_are_refused(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        parse_htpasswd(text)


def test_further_fields_of_a_line_are_not_part_of_the_hash() -> None:
    assert check_password(parse_htpasswd(f"ada:{KINDS['sha1']}:Ada Lovelace"), "ada", "password")


def test_unknown_users_cost_what_known_ones_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same hashes are computed, whatever the schemes and costs of the file."""
    from headgate.crypto import htpasswd

    users = parse_htpasswd("".join(f"{name.replace(' ', '')}:{digest}\n" for name, digest in made().items()))
    compared: list[str] = []

    class Hashes:
        @staticmethod
        def verify(password: str, digest: str) -> bool:
            compared.append(digest)
            return True

    monkeypatch.setattr(htpasswd, "_hashes", Hashes)
    strangers = [f"stranger{number}" for number in range(200)]
    assert not any(check_password(users, name, "password") for name in strangers)
    assert set(compared) == set(users.values()), "each kind stands in for some names"
    first, compared[:] = list(compared), []
    assert not any(check_password(users, name, "password") for name in strangers)
    assert compared == first, "and for the same ones always"
