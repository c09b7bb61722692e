"""TLS settings of listeners and of connections to backends."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.document.secret import Secret
from headgate.ir.secret import SecretRef

TlsVersion = Literal["TLS_V1_2", "TLS_V1_3"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """The certificate chain and private key of a listener. Both are known to be well-formed and to match.

    `cert_pem` begins with the leaf certificate. `versions` are the minimum and the maximum TLS version. `suites` and
    `groups` are names of the engine (tls.names) in the order of preference; empty means its defaults. `alpn` None means
    what the gateway speaks. With `root_pem`, clients must have a certificate that it has signed. `key` is stable while
    the settings and the contents of all files do not change.
    """

    cert_file: str
    key_file: str
    cert_pem: bytes
    key_pem: Secret
    key: str
    versions: tuple[TlsVersion, TlsVersion] = ("TLS_V1_2", "TLS_V1_3")
    suites: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    alpn: tuple[bytes, ...] | None = None
    root_file: str | None = None
    root_pem: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCertificate:
    """The client certificate that the gateway presents to a backend."""

    cert_file: str
    key: SecretRef
    cert_pem: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendTls:
    """TLS to a backend.

    `root_pem` None means the trust store of the system. `hostname` None means the backend's host; it is
    sent as SNI and verified. `insecure` switches verification off, `insecure_host` only that of the name.
    `alpn` None means `http/1.1`. With `subject_alt_names`, the certificate must have one of these names instead of the
    host's. `groups` are names of the engine (tls.names) in the order of preference; empty means its defaults.
    """

    root_file: str | None = None
    root_pem: bytes | None = None
    hostname: str | None = None
    insecure: bool = False
    insecure_host: bool = False
    alpn: tuple[str, ...] | None = None
    client: ClientCertificate | None = None
    subject_alt_names: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
