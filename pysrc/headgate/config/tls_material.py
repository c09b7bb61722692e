"""Certificates and keys: read, checked, and turned into the IR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.document import fields
from headgate.document.secret import Secret
from headgate.errors import Problem
from headgate.ir.digest import digest
from headgate.ir.secret import SecretRef
from headgate.ir.tls import BackendTls, ClientCertificate, ServerTls, TlsVersion

if TYPE_CHECKING:
    from cryptography import x509

HTTP11 = "http/1.1"
HTTP2 = "h2"
# Of `subjectAltNames` (specification, BackendTLS).
MOST_NAMES = 16
UNSUPPORTED_VERSIONS = ("TLS_V1_0", "TLS_V1_1")


def _certificates(context: Context, record: Record, key: str, pem: bytes) -> list[x509.Certificate]:
    from cryptography import x509  # 9 MB: only where there are certificates

    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        context.fault(Problem.FILE, record, key, "the file holds no readable PEM certificate")
        return []


def _pair(context: Context, record: Record) -> tuple[str, bytes, str, Secret] | None:
    """Read `cert` and `key` and check that they belong together."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    for name, other in (("cert", "key"), ("key", "cert")):
        if record.get(name) is None:
            context.fault(Problem.MISSING, record, "", f"tls needs {name!r} beside {other!r}")
            return None
    cert = context.read_file(record, "cert", record["cert"])
    key = context.read_file(record, "key", record["key"])
    if cert is None or key is None:
        return None
    chain = _certificates(context, record, "cert", cert[1])
    try:
        private = serialization.load_pem_private_key(key[1], password=None)
        public = private.public_key()
        text = key[1].decode("ascii")
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # The cause is left out: parsers quote what they read.
        context.fault(Problem.FILE, record, "key", "the file holds no readable, unencrypted PEM private key")
        return None
    if not chain:
        return None
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    der = serialization.Encoding.DER
    if chain[0].public_key().public_bytes(der, spki) != public.public_bytes(der, spki):
        context.fault(
            Problem.FILE, record, "key", "the key does not belong to the first certificate of 'cert'"
        )
        return None
    return cert[0], cert[1], key[0], Secret(text)


def _version(
    context: Context, keys: tuple[str, ...], records: tuple[Record, Record], default: TlsVersion
) -> TlsVersion:
    """Return the value of the first record that has one of the keys."""
    for record in records:
        for key in keys:
            word = record.get(key)
            if word in UNSUPPORTED_VERSIONS:
                context.fault(Problem.VALUE, record, key, f"unsupported TLS version {word}: it is broken")
                return default
            if word is not None:
                chosen: TlsVersion = word
                return chosen
    return default


def _suites(
    context: Context, records: tuple[Record, Record], versions: tuple[TlsVersion, TlsVersion]
) -> tuple[str, ...]:
    """Return the cipher suites of the first record that has some, in the engine's spelling."""
    from headgate_engine.tls.names import SUITE_ALIASES, SUITES, SUITES_1_3

    record = next((one for one in records if one.get("cipherSuites")), None)
    if record is None:
        return ()
    found: dict[str, None] = {}
    for name in record["cipherSuites"]:
        known = SUITE_ALIASES.get(name, name)
        if known not in SUITES:
            message = f"unknown cipher suite {name!r}; known: {', '.join(SUITES)}"
            context.fault(Problem.VALUE, record, "cipherSuites", message)
            return ()
        found[known] = None
    usable = {"TLS_V1_3" if name in SUITES_1_3 else "TLS_V1_2" for name in found}
    if not usable & set(versions):
        message = f"no suite is left for the TLS versions {versions[0]} to {versions[1]}"
        context.fault(Problem.CONFLICT, record, "cipherSuites", message)
        return ()
    return tuple(found)


def _groups(context: Context, *records: Record) -> tuple[str, ...]:
    """Return the key exchange groups of the first record that has some.

    A group that the loaded library does not have is a fault.
    """
    from headgate_engine.tls.context import supports_group
    from headgate_engine.tls.library import version
    from headgate_engine.tls.names import GROUPS

    record = next((one for one in records if one.get("keyExchangeGroups")), None)
    if record is None:
        return ()
    for name in record["keyExchangeGroups"]:
        message = None
        if name not in GROUPS:
            message = f"unknown key exchange group {name!r}; known: {', '.join(GROUPS)}"
        elif not supports_group(name):
            message = f"the loaded {version()} has no key exchange group {name}"
        if message is not None:
            context.fault(Problem.VALUE, record, "keyExchangeGroups", message)
            return ()
    return tuple(dict.fromkeys(record["keyExchangeGroups"]))


def _alpn(context: Context, common: Record) -> tuple[bytes, ...] | None:
    """Return the protocols that a client may choose from; None: what the gateway speaks."""
    from headgate_engine.link.protocols import NEGOTIATED

    entries = common.get("alpn")
    if entries is None:
        return None
    found = tuple(bytes(entry) for entry in entries)
    for name in found:
        if name.decode("latin-1") not in NEGOTIATED:
            shown = name.decode("ascii", "backslashreplace")
            message = f"the gateway does not speak {shown!r} here; it speaks {', '.join(NEGOTIATED)}"
            context.fault(Problem.VALUE, common, "alpn", message)
            return None
    return tuple(dict.fromkeys(found))


def _root(context: Context, record: Record) -> tuple[str, bytes] | None:
    """Read `root` and check that it holds certificates; None without it, or after a report."""
    if record.get("root") is None:
        return None
    root = context.read_file(record, "root", record["root"])
    return root if root is not None and _certificates(context, record, "root", root[1]) else None


def server_tls(context: Context, record: Record, common: Record) -> ServerTls | None:
    """Return the TLS of a listener, or None after a report. `common` is `frontendPolicies.tls`."""
    least = _version(context, ("minTLSVersion", "minTlsVersion", "minVersion"), (record, common), "TLS_V1_2")
    most = _version(context, ("maxTLSVersion", "maxTlsVersion", "maxVersion"), (record, common), "TLS_V1_3")
    if least > most:
        context.fault(Problem.CONFLICT, record, "", f"no TLS version is left: at least {least}, at most {most}")
    if record.get("cert") is None and record.get("key") is None:
        context.fault(Problem.MISSING, record, "", "tls needs 'cert' and 'key'")
        return None
    found = _pair(context, record)
    if found is None:
        return None
    cert_file, cert_pem, key_file, key = found
    root = _root(context, record)
    if record.get("root") is not None and root is None:
        return None
    suites = _suites(context, (record, common), (least, most))
    groups = _groups(context, record, common)
    alpn = _alpn(context, common)
    return ServerTls(
        cert_file=cert_file,
        key_file=key_file,
        cert_pem=cert_pem,
        key_pem=key,
        key=f"tls/{digest(cert_file, key_file, cert_pem, key, least, most, suites, groups, alpn, root)}",
        versions=(least, most),
        suites=suites,
        groups=groups,
        alpn=alpn,
        root_file=root[0] if root else None,
        root_pem=root[1] if root else None,
    )


def backend_tls(context: Context, record: Record) -> BackendTls:
    """Return the TLS settings towards a backend. Invalid settings are reported and left out."""
    root = _root(context, record)
    client = None
    if record.get("cert") is not None or record.get("key") is not None:
        found = _pair(context, record)
        if found is not None:
            cert_file, cert_pem, key_file, key = found
            client = ClientCertificate(
                cert_file=cert_file, cert_pem=cert_pem, key=SecretRef(secret=key, file=key_file)
            )
    hostname = record.get("hostname")
    if hostname is not None:
        try:
            hostname = fields.server_name(hostname)
        except ValueError as error:
            context.fault(Problem.VALUE, record, "hostname", str(error))
    alpn = record.get("alpn")
    if alpn is not None and not set(alpn) <= {HTTP2, HTTP11}:
        context.fault(Problem.UNSUPPORTED, record, "alpn", f" other than {HTTP2} and {HTTP11}")
    return BackendTls(
        root_file=root[0] if root else None,
        root_pem=root[1] if root else None,
        hostname=hostname,
        insecure=record.get("insecure", False),
        insecure_host=record.get("insecureHost", False),
        alpn=tuple(alpn) if alpn is not None else None,
        client=client,
        subject_alt_names=_alternative_names(context, record),
        groups=_groups(context, record),
    )


def _alternative_names(context: Context, record: Record) -> tuple[str, ...]:
    names = record.get("subjectAltNames") or ()
    if len(names) > MOST_NAMES or not all(names):
        context.fault(Problem.VALUE, record, "subjectAltNames", f"1 to {MOST_NAMES} names that are not empty")
    if names and (record.get("insecure") or record.get("insecureHost")):
        message = "names are not checked with 'insecure' or 'insecureHost'"
        context.fault(Problem.CONFLICT, record, "subjectAltNames", message)
    return tuple(names)
