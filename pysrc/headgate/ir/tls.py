"""TLS settings of listeners and of connections to backends."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.document.secret import Secret
from headgate.ir.secret import SecretRef

TlsVersion = Literal["TLS_V1_2", "TLS_V1_3"]
# Where the certificate of a listener comes from: it is configured, it is the gateway's own of the SPIFFE Workload API,
# or it is made for each server name by an authority that is configured.
CertificateSource = Literal["configured", "spiffe", "dynamicCa"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPair:
    """A further certificate chain of a listener, and its key. The files are None for inline values."""

    cert_file: str | None
    key_file: str | None
    cert_pem: bytes
    key_pem: Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """The certificate chain and private key of a listener. Both are known to be well-formed and to match.

    `cert_pem` begins with the leaf certificate. `versions` are the minimum and the maximum TLS version. `suites` and
    `groups` are names of the engine (tls.names) in the order of preference; empty means its defaults. `alpn` None means
    what the gateway speaks. With `root_pem`, clients must have a certificate that it has signed; with `strangers` they
    are admitted without one, too, and are then nobody. `key` is stable while the settings and the contents of all files
    do not change. The files are None for what stands in the configuration itself.

    `others` are further pairs, for the names in their certificates; what no other has goes to the first.

    With the source `spiffe` there is no pair, and clients must have an X.509-SVID of the gateway's own trust domain.
    With `dynamicCa` the pair is that of an authority; the certificates that it makes are kept for `minted_ms`
    milliseconds, at most `minted_most` of them.
    """

    cert_file: str | None
    key_file: str | None
    cert_pem: bytes
    key_pem: Secret
    key: str
    source: CertificateSource = "configured"
    minted_ms: int = 300_000
    minted_most: int = 256
    versions: tuple[TlsVersion, TlsVersion] = ("TLS_V1_2", "TLS_V1_3")
    suites: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    alpn: tuple[bytes, ...] | None = None
    root_file: str | None = None
    root_pem: bytes | None = None
    strangers: bool = False
    others: tuple[ServerPair, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCertificate:
    """The client certificate that the gateway presents to a backend. `cert_file` is None for an inline one."""

    cert_file: str | None
    key: SecretRef
    cert_pem: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendTls:
    """TLS to a backend.

    `root_pem` None means the trust store of the system. `hostname` None means the backend's host; it is
    sent as SNI and verified. `insecure` switches verification off, `insecure_host` only that of the name.
    `alpn` None means `http/1.1`. With `subject_alt_names`, the certificate must have one of these names instead of the
    host's. `groups` are names of the engine (tls.names) in the order of preference; empty means its defaults.
    With `spiffe`, the gateway presents its X.509-SVID, and the backend must have one of the trust domain that
    `subject_alt_names` are of, else of the gateway's own.
    """

    spiffe: bool = False
    root_file: str | None = None
    root_pem: bytes | None = None
    hostname: str | None = None
    insecure: bool = False
    insecure_host: bool = False
    alpn: tuple[str, ...] | None = None
    client: ClientCertificate | None = None
    subject_alt_names: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Svid:
    """An X.509-SVID of the gateway as the SPIFFE Workload API has given it, with the trust bundles that came with it.

    `cert_pem` begins with the leaf certificate. `expires` is in seconds since the epoch. `bundles` are (trust domain,
    authorities in PEM); that of the gateway's own trust domain is among them.
    """

    spiffe_id: str
    trust_domain: str
    cert_pem: bytes
    key_pem: Secret
    expires: float
    bundles: tuple[tuple[str, bytes], ...]

    def authorities(self, trust_domain: str) -> bytes | None:
        """Return the authorities of a trust domain in PEM, None if its bundle is not known."""
        return dict(self.bundles).get(trust_domain)
