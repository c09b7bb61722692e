"""Certificates and keys: read, checked, and turned into the IR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.process_settings import WORKLOAD_API
from headgate.document import fields
from headgate.document.secret import Secret
from headgate.errors import Problem
from headgate.ir.digest import digest
from headgate.ir.secret import SecretRef
from headgate.ir.tls import BackendTls, CertificateSource, ClientCertificate, ServerPair, ServerTls, TlsVersion
from headgate_engine.tls.identity import trust_domain_of

if TYPE_CHECKING:
    from cryptography import x509

HTTP11 = "http/1.1"
HTTP2 = "h2"
# Of `subjectAltNames` (specification, BackendTLS).
MOST_NAMES = 16
MOST_PROTOCOLS = 16
UNSUPPORTED_VERSIONS = ("TLS_V1_0", "TLS_V1_1")
# What begins a text in PEM (RFC 7468 section 2), where the name of a file may stand as well.
PEM = "-----BEGIN "
NO_SECRET = Secret("")


def _material(context: Context, record: Record, key: str) -> tuple[str | None, bytes] | None:
    """Return absolute path and content of the file that entry `key` names, or None and the PEM that stands there.

    None after a report.
    """
    text = record[key].lstrip()
    if not text.startswith(PEM):
        return context.read_file(record, key, record[key])
    return None, text.encode("utf-8", "replace")


def _certificates(context: Context, record: Record, key: str, pem: bytes) -> list[x509.Certificate]:
    from cryptography import x509  # 9 MB: only where there are certificates

    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        context.fault(Problem.FILE, record, key, "no readable PEM certificate")
        return []


def _in_lines(certificates: list[x509.Certificate]) -> bytes:
    """Return PEM as OpenSSL requires it: in a configuration or a variable, its line breaks may be lost."""
    from cryptography.hazmat.primitives.serialization import Encoding

    return b"".join(one.public_bytes(Encoding.PEM) for one in certificates)


def _pair(context: Context, record: Record) -> tuple[str | None, bytes, str | None, Secret] | None:
    """Read `cert` and `key` and check that they belong together."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    for name, other in (("cert", "key"), ("key", "cert")):
        if record.get(name) is None:
            context.fault(Problem.MISSING, record, "", f"tls needs {name!r} beside {other!r}")
            return None
    cert = _material(context, record, "cert")
    key = _material(context, record, "key")
    if cert is None or key is None:
        return None
    chain = _certificates(context, record, "cert", cert[1])
    try:
        private = serialization.load_pem_private_key(key[1], password=None)
        public = private.public_key()
        text = key[1].decode("ascii")
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # The cause is left out: parsers quote what they read.
        context.fault(Problem.FILE, record, "key", "no readable, unencrypted PEM private key")
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
    pem = _in_lines(chain) if cert[0] is None else cert[1]
    if key[0] is None:
        plain = serialization.NoEncryption()
        written = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        text = written.decode("ascii")
    return cert[0], pem, key[0], Secret(text)


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


def _root(context: Context, record: Record) -> tuple[str | None, bytes] | None:
    """Read `root` and check that it holds certificates; None without it, or after a report."""
    if record.get("root") is None:
        return None
    root = _material(context, record, "root")
    found = [] if root is None else _certificates(context, record, "root", root[1])
    if root is None or not found:
        return None
    return root if root[0] is not None else (None, _in_lines(found))


def server_tls(context: Context, record: Record, common: Record) -> ServerTls | None:
    """Return the TLS of a listener, or None after a report. `common` is `frontendPolicies.tls`."""
    least = _version(context, ("minTLSVersion", "minTlsVersion", "minVersion"), (record, common), "TLS_V1_2")
    most = _version(context, ("maxTLSVersion", "maxTlsVersion", "maxVersion"), (record, common), "TLS_V1_3")
    if least > most:
        context.fault(Problem.CONFLICT, record, "", f"no TLS version is left: at least {least}, at most {most}")
    source = _source(context, record)
    found: tuple[str | None, bytes, str | None, Secret] | None = (None, b"", None, NO_SECRET)
    if source != "spiffe":
        if record.get("cert") is None and record.get("key") is None:
            context.fault(Problem.MISSING, record, "", "tls needs 'cert' and 'key'")
            return None
        found = _pair(context, record)
    if found is None or source is None:
        return None
    others = _others(context, record, source)
    if others is None:
        return None
    cert_file, cert_pem, key_file, key = found
    minted = _minting(context, record, cert_pem, key) if source == "dynamicCa" else {}
    root = _root(context, record)
    if record.get("root") is not None and root is None:
        return None
    strangers = _admits_strangers(context, record)
    suites = _suites(context, (record, common), (least, most))
    if source == "dynamicCa" and suites and all("_RSA_" in name for name in suites):
        message = "the certificates of the mode dynamicCa have EC keys, and all of these suites want RSA"
        context.fault(Problem.CONFLICT, record, "cipherSuites", message)
    groups = _groups(context, record, common)
    alpn = _alpn(context, common)
    settings = (least, most, suites, groups, alpn, root, strangers)
    return ServerTls(
        cert_file=cert_file,
        key_file=key_file,
        cert_pem=cert_pem,
        key_pem=key,
        key=f"tls/{digest(*found, *settings, source, others, *minted.values())}",
        source=source,
        **minted,
        versions=(least, most),
        suites=suites,
        groups=groups,
        alpn=alpn,
        root_file=root[0] if root else None,
        root_pem=root[1] if root else None,
        strangers=strangers,
        others=others,
    )


def _others(context: Context, record: Record, source: CertificateSource) -> tuple[ServerPair, ...] | None:
    """Return the pairs of `moreCertificates`, None after a report."""
    if record.get("moreCertificates") is None:
        return ()
    if source != "configured":
        message = "only beside 'cert' and 'key' of the mode static"
        context.fault(Problem.CONFLICT, record, "moreCertificates", message)
        return None
    found = [_pair(context, one) for one in record.records("moreCertificates")]
    pairs = [one for one in found if one is not None]
    if len(pairs) < len(found):
        return None
    return tuple(ServerPair(cert_file=one[0], cert_pem=one[1], key_file=one[2], key_pem=one[3]) for one in pairs)


def _admits_strangers(context: Context, record: Record) -> bool:
    """Tell whether clients need no valid certificate though one is asked for."""
    if record.get("clientValidation") is None:
        return False
    if record.get("root") is None:
        message = "only with 'root', which says whose certificates are valid"
        context.fault(Problem.CONFLICT, record, "clientValidation", message)
        return False
    if record["clientValidation"] == "allowValidOnly":
        return False
    message = "clients are admitted without a valid certificate; nothing of an invalid one is believed"
    context.warnings.append(f"{record.path}.clientValidation: {message}")
    return True


def _minting(context: Context, record: Record, cert_pem: bytes, key: Secret) -> dict[str, int]:
    """Return the bounds of what an authority makes, as ServerTls has them."""
    from headgate.config.dynamic_ca import minting  # few need it

    found = minting(context, record, cert_pem, key)
    return {"minted_ms": found.kept_ms, "minted_most": found.most}


def _source(context: Context, record: Record) -> CertificateSource | None:
    """Return where the certificate of a listener comes from, None after a report."""
    mints = record.get("mode") == "dynamicCa"
    if record.get("spiffe") is not None:
        others = ("cert", "key", "root", "mode") if mints else ("cert", "key", "root")
        return "spiffe" if _needs_workload_api(context, record, others) else None
    if mints and record.get("root") is not None:
        context.fault(Problem.CONFLICT, record, "root", "not with the mode dynamicCa, which asks clients for nothing")
        return None
    return "dynamicCa" if mints else "configured"


def _needs_workload_api(context: Context, record: Record, others: tuple[str, ...]) -> bool:
    """Note that a part needs the SPIFFE Workload API; tell whether there is one, and nothing beside it. `others`: the
    entries that it excludes.
    """
    context.notes.spiffe = True
    beside = [name for name in others if record.get(name)]
    for name in beside:
        message = "not with 'spiffe', which brings certificate, key and authorities"
        context.fault(Problem.CONFLICT, record, name, message)
    if not context.has_workload_api:
        message = (
            f"nothing says where the SPIFFE Workload API is: set config.spiffe.endpoint or {WORKLOAD_API} "
            "(unix:///path or tcp://address:port)"
        )
        context.fault(Problem.MISSING, record, "spiffe", message)
    return context.has_workload_api and not beside


def _protocols(context: Context, record: Record, *, tcp_route: bool) -> tuple[str, ...] | None:
    """Return the protocols that a backend is offered (RFC 7301): any by a TCP route, whose bytes go on as they come."""
    names = record.get("alpn")
    if names is None:
        return None
    if not tcp_route and not set(names) <= {HTTP2, HTTP11}:
        message = f"requests are sent in {HTTP2} and {HTTP11}; other protocols are for backends of tcpRoutes"
        context.fault(Problem.VALUE, record, "alpn", message)
    elif len(names) > MOST_PROTOCOLS or not all(name.isascii() and 0 < len(name) < 256 for name in names):
        context.fault(Problem.VALUE, record, "alpn", f"up to {MOST_PROTOCOLS} names, each of 1 to 255 ASCII characters")
    return tuple(names)


def backend_tls(context: Context, record: Record, *, tcp_route: bool = False) -> BackendTls:
    """Return the TLS settings towards a backend. Invalid settings are reported and left out."""
    spiffe = record.get("spiffe") is not None
    if spiffe and not _needs_workload_api(context, record, ("cert", "key", "root", "insecure", "insecureHost")):
        return BackendTls(spiffe=True)
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
    return BackendTls(
        spiffe=spiffe,
        root_file=root[0] if root else None,
        root_pem=root[1] if root else None,
        hostname=hostname,
        insecure=record.get("insecure", False),
        insecure_host=record.get("insecureHost", False),
        alpn=_protocols(context, record, tcp_route=tcp_route),
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
    if names and record.get("spiffe") is not None:
        domains = {trust_domain_of(name) for name in names}
        if None in domains:
            message = "with 'spiffe', the names are SPIFFE IDs: spiffe://<trust domain>/<path>"
            context.fault(Problem.VALUE, record, "subjectAltNames", message)
        elif len(domains) > 1:
            message = "SPIFFE IDs of one trust domain, whose authorities the backend is checked against"
            context.fault(Problem.CONFLICT, record, "subjectAltNames", message)
    return tuple(names)
