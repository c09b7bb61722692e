"""Contexts of a listener that makes its certificates."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from headgate.document.secret import Secret
from headgate.ir.tls import ServerTls
from headgate.net.minting import MintingListener
from headgate_engine.errors import TlsError
from headgate_engine.tls.context import TlsContext


@dataclass
class Rig:
    hostname: str | None = None
    kept_ms: int = 60_000
    made: list[str] = field(default_factory=list)

    def listener(self, cert: bytes | None = None, key: str = "") -> MintingListener:
        authority = trustme.CA()
        tls = ServerTls(
            cert_file=None, key_file=None, cert_pem=cert or authority.cert_pem.bytes(), key="k", source="dynamicCa",
            key_pem=Secret(key or authority.private_key_pem.bytes().decode()), minted_ms=self.kept_ms, minted_most=3,
        )  # fmt: skip
        return MintingListener(tls, self.hostname, self._make)

    def _make(self, cert: bytes, key: bytes, name: str) -> TlsContext:
        self.made.append(name)
        return TlsContext(server=True, cert=cert, key=key)


def test_the_ones_used_last_are_kept() -> None:
    rig = Rig()
    found = rig.listener()
    first = {name: found.find(f"{name}.test") for name in "abc"}
    assert found.find("a.test") is first["a"]
    found.find("d.test")
    assert len(found) == 3
    assert found.find("a.test") is first["a"]
    assert found.find("b.test") is not first["b"]
    assert rig.made == ["a.test", "b.test", "c.test", "d.test", "b.test"]


def test_they_are_kept_for_a_while(monkeypatch: Any) -> None:
    rig = Rig()
    found = rig.listener()
    first, now = found.find("a.test"), time.monotonic()
    monkeypatch.setattr("headgate.net.minting.time.monotonic", lambda: now + 59)
    assert found.find("a.test") is first
    monkeypatch.setattr("headgate.net.minting.time.monotonic", lambda: now + 61)
    assert found.find("a.test") is not first


@pytest.mark.parametrize(("hostname", "name"), [(None, None), ("*.a.test", None), (None, "a b"), ("a.test", "1.2.3.4")])
def test_names_that_get_none(hostname: str | None, name: str | None) -> None:
    found = Rig(hostname).listener()
    with pytest.raises(TlsError):
        found.find(name)
    assert len(found) == 0


def test_without_a_name_that_of_the_listener_is_taken() -> None:
    rig = Rig("a.test")
    found = rig.listener()
    assert found.find(None) is found.find("a.test")
    assert rig.made == ["a.test"]


def test_a_key_is_not_checked_again() -> None:
    """That takes half a second of the loop for 4096 bits of RSA, and the loader has done it."""
    authority = trustme.CA(key_type=trustme.KeyType.RSA)
    tls = ServerTls(
        cert_file=None, key_file=None, cert_pem=authority.cert_pem.bytes(), key="k", source="dynamicCa",
        key_pem=Secret(authority.private_key_pem.bytes().decode()),
    )  # fmt: skip
    checked: list[bool] = []

    def load(*arguments: Any, unsafe_skip_rsa_key_validation: bool = False, **options: Any) -> Any:
        checked.append(not unsafe_skip_rsa_key_validation)
        return serialization.load_pem_private_key(*arguments, unsafe_skip_rsa_key_validation=True, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headgate.crypto.certificate_authority.serialization", Loader(load))
        MintingListener(tls, None, Rig()._make)
    assert checked == [False]


class Loader:
    """The module that loads keys, with another function in the place of one."""

    def __init__(self, load: Any) -> None:
        self.load_pem_private_key = load

    def __getattr__(self, name: str) -> Any:
        return getattr(serialization, name)


def slow_authority() -> tuple[bytes, str]:
    """An authority with an RSA key of 3072 bits: certificate and key."""
    key = rsa.generate_private_key(65537, 3072)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return built.public_bytes(serialization.Encoding.PEM), private.decode()


def test_long_keys_sign_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.net.minting.MOST_AT_A_TIME", 2)
    rig = Rig()
    found = rig.listener(*slow_authority())

    async def handshakes() -> None:
        first, second = found.find("a.test"), found.find("b.test")
        assert isinstance(first, asyncio.Task)
        assert isinstance(second, asyncio.Task)
        assert found.find("a.test") is first, "one for all who ask"
        with pytest.raises(TlsError, match="too many certificates are being issued"):
            found.find("c.test")
        made = await first
        assert isinstance(made, TlsContext)
        assert found.find("a.test") is made
        await second
        refused = found.find("a b")
        assert isinstance(refused, asyncio.Task)
        error = await refused
        assert isinstance(error, TlsError)
        assert "not a host name" in str(error)

    asyncio.run(handshakes())
    assert sorted(rig.made) == ["a.test", "b.test"]
