"""TLS towards clients and towards backends."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.document.secret import Secret
from headgate.ir.secret import SecretRef

TlsVersion = Literal["TLS_V1_2", "TLS_V1_3"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """The certificate chain and key a listener shows; both were checked to parse and to fit each other.

    `cert_pem` holds the leaf first. `versions` are the least and the most that clients may have, the same for all
    listeners of a port. `key` is stable while the settings and both files keep their content.
    """

    cert_file: str
    key_file: str
    cert_pem: bytes
    key_pem: Secret
    key: str
    versions: tuple[TlsVersion, TlsVersion] = ("TLS_V1_2", "TLS_V1_3")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCertificate:
    """What the gateway shows a backend that asks for a certificate."""

    cert_file: str
    key: SecretRef
    cert_pem: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendTls:
    """TLS to a backend.

    `root_pem` None means the trust store of the system. `hostname` None means the backend's host; it is
    sent as SNI and verified. `insecure` switches verification off, `insecure_host` only that of the name.
    `alpn` None means whatever the protocol of the call wants (`http/1.1` today).
    """

    root_file: str | None = None
    root_pem: bytes | None = None
    hostname: str | None = None
    insecure: bool = False
    insecure_host: bool = False
    alpn: tuple[str, ...] | None = None
    client: ClientCertificate | None = None
