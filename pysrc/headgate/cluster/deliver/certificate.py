"""The certificate of the delivery: from an authority of our own, or what the user has put into the Secret.

The Secret may have, in PEM: `ca.crt` and `ca.key`, an authority; `tls.crt` and `tls.key` of one; or `tls.crt`,
`tls.key` of a server and `ca.crt`, what data planes verify it with. Without the Secret, an authority is made and put
there. Private keys of servers that it signs stay in memory.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ipaddress
import logging
import os
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from headgate.cluster.calls import ApiCalls, ApiError
from headgate.cluster.deliver.settings import DeliverySettings
from headgate.crypto.certificate_authority import CertificateAuthority

logger = logging.getLogger("headgate.cluster.deliver")
YEARS: Final = 10
# A certificate for a day is replaced after half of it.
RENEW_S: Final = 12 * 3600.0
RETRY_S: Final = 60.0
BACKDATED: Final = timedelta(hours=1)
SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 (a file of its own, with mode 0600)


class Serving(NamedTuple):
    """`authority`: what verifies `certificate`; all in PEM."""

    authority: bytes
    certificate: bytes
    key: bytes


class ServingCertificate:
    """What the port of the delivery shows. `context`: for the next connection; `authority`: as in Serving."""

    def __init__(self, calls: ApiCalls, settings: DeliverySettings) -> None:
        self._calls = calls
        self._settings = settings
        self.context: ssl.SSLContext | None = None
        self.authority: bytes | None = None

    async def begin(self) -> None:
        """Read the Secret, or make it. Raises ApiError, and ValueError for what is no certificate."""
        serving = serving_from(await self._secret(), self._settings.names)
        self.context = await asyncio.to_thread(context_of, serving)
        self.authority = serving.authority

    async def keep(self) -> None:
        """Renew until cancelled. A failure leaves what there is, and is tried again."""
        pause = RENEW_S
        while True:
            await asyncio.sleep(pause)
            try:
                await self.begin()
            except (ApiError, ValueError, OSError) as error:
                logger.error("the certificate of the delivery is not renewed", extra={"error": str(error)})
                pause = RETRY_S
            else:
                pause = RENEW_S

    async def _secret(self) -> dict[str, bytes]:
        """Return what the Secret holds. Of several replicas that make one, the first succeeds."""
        folder = f"/api/v1/namespaces/{self._settings.namespace}/secrets"
        path = f"{folder}/{self._settings.secret}"
        try:
            found = await self._calls.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            try:
                found = await self._calls.create(folder, self._new_secret())
            except ApiError as conflict:
                if conflict.reason != "AlreadyExists":
                    raise
                found = await self._calls.get(path)
        data: dict[str, str] = found.get("data") or {}
        try:
            return {name: base64.b64decode(value, validate=True) for name, value in data.items()}
        except binascii.Error:
            raise ValueError(f"Secret {self._settings.secret} is not Base64") from None

    def _new_secret(self) -> dict[str, Any]:
        certificate, key = new_authority(datetime.now(UTC))
        logger.info("made an authority for the delivery", extra={"secret": self._settings.secret})
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self._settings.secret, "namespace": self._settings.namespace},
            "type": "Opaque",
            "data": {
                "ca.crt": base64.b64encode(certificate).decode(),
                "ca.key": base64.b64encode(key).decode(),
            },
        }


def new_authority(now: datetime) -> tuple[bytes, bytes]:
    """Return certificate and key of a new authority (ECDSA P-256, 10 years), in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "headgate delivery")])
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + timedelta(days=365 * YEARS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private


def serving_from(data: dict[str, bytes], names: tuple[str, ...]) -> Serving:
    """Return what to serve with by the content of the Secret. Raises ValueError."""
    if "ca.crt" in data and "ca.key" in data:
        return _signed(data["ca.crt"], data["ca.key"], names)
    if "tls.crt" not in data or "tls.key" not in data:
        raise ValueError("the Secret of the delivery has neither ca.crt and ca.key nor tls.crt and tls.key")
    if "ca.crt" in data:
        return Serving(data["ca.crt"], data["tls.crt"], data["tls.key"])
    return _signed(data["tls.crt"], data["tls.key"], names)


def _signed(certificate: bytes, key: bytes, names: tuple[str, ...]) -> Serving:
    pair = CertificateAuthority(certificate, key).issue_for([_general(name) for name in names])
    return Serving(certificate, pair.cert_pem, pair.key_pem)


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def context_of(serving: Serving) -> ssl.SSLContext:
    """Return the settings of a server. Raises ValueError if the key is not that of the certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
    folder = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    # The module takes them from files only; this one is gone before anybody else could open it (mode 0600).
    with tempfile.NamedTemporaryFile(dir=folder, prefix="headgate-") as file:
        file.write(serving.key + b"\n" + serving.certificate)
        file.flush()
        try:
            context.load_cert_chain(file.name)
        except ssl.SSLError as error:
            raise ValueError(f"the certificate of the delivery cannot be used: {error.reason}") from None
    return context
