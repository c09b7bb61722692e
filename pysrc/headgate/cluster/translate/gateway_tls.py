"""`spec.tls` of a Gateway: which certificates its clients need, and which one it shows to its backends.

https://gateway-api.sigs.k8s.io/reference/spec/#gatewaytlsconfig
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from cryptography import x509

from headgate.cluster.snapshot import CONFIG_MAP, GATEWAY, SECRET, GroupKind, ObjectKey, Snapshot, key_of
from headgate.cluster.translate.certificates import in_pem, pair
from headgate.cluster.translate.conditions import Condition, Unmet, judged
from headgate.cluster.translate.fragments import Fragment, Json
from headgate.cluster.translate.grants import permitted
from headgate.cluster.translate.secrets import pem

_FALLBACK: Final = "AllowInsecureFallback"
_CA_KINDS: Final = (CONFIG_MAP, SECRET)


class ClientTrust(NamedTuple):
    """Whose certificates the clients of a port need. `form`: entries of the file's `tls`, None if no reference leads to
    an authority. `unmet`: references that lead nowhere.
    """

    form: Json | None
    unmet: list[Unmet]


def client_trust(snapshot: Snapshot, gateway: Json, port: int) -> ClientTrust | None:
    """Return what clients of HTTPS at a port need; None if they need nothing."""
    validation = _validation(_frontend(gateway), port)
    if validation is None:
        return None
    found: dict[str, None] = {}
    unmet = []
    for reference in validation["caCertificateRefs"]:
        authorities = _authorities(snapshot, key_of(gateway).namespace, reference)
        if isinstance(authorities, Unmet):
            unmet.append(authorities)
        else:
            found[authorities] = None
    if not found:
        return ClientTrust(None, unmet)
    form: Json = {"root": "".join(found)}
    if validation.get("mode") == _FALLBACK:
        form["clientValidation"] = "allowInsecureFallback"
    return ClientTrust(form, unmet)


def _frontend(gateway: Json) -> Json:
    return (gateway["spec"].get("tls") or {}).get("frontend") or {}


def _validation(frontend: Json, port: int) -> Json | None:
    """Return the validation at a port. An entry for the port counts alone, also one that asks for nothing."""
    said: Json = frontend.get("default") or {}
    for one in frontend.get("perPort") or ():
        if one["port"] == port:
            said = one["tls"]
    return said.get("validation")


def _authorities(snapshot: Snapshot, namespace: str, reference: Json) -> str | Unmet:
    """Return the authorities that a reference leads to in PEM, or why there are none."""
    kind = GroupKind(reference["group"], reference["kind"])
    key = ObjectKey(reference.get("namespace") or namespace, reference["name"])
    if kind not in _CA_KINDS:
        message = f"{kind.kind} {key} of group {kind.group!r}: authorities are in ConfigMaps and Secrets"
        return Unmet("InvalidCACertificateKind", message)
    if not permitted(snapshot, GATEWAY, namespace, kind, key):
        message = f"{kind.kind} {key}: no ReferenceGrant lets Gateways of {namespace} refer to it"
        return Unmet("RefNotPermitted", message)
    try:
        text = pem(snapshot, key.namespace, {"kind": kind.kind, "name": key.name}, "ca.crt")
    except ValueError as error:
        return Unmet("InvalidCACertificateRef", str(error))
    try:
        return in_pem(x509.load_pem_x509_certificates(text.encode()))
    except ValueError:
        # The library's words may quote what stands there.
        return Unmet("InvalidCACertificateRef", f"{kind.kind} {key}: ca.crt holds no certificates in PEM")


def own_certificate(snapshot: Snapshot, gateway: Json) -> Json | Unmet | None:
    """Return the certificate that a Gateway shows to backends, as `cert` and `key`; why there is none; None if it is
    not asked for one.
    """
    reference = ((gateway["spec"].get("tls") or {}).get("backend") or {}).get("clientCertificateRef")
    if reference is None:
        return None
    return pair(snapshot, key_of(gateway).namespace, reference, "InvalidClientCertificateRef")


def conditions(gateway: Json, certificate: Json | Unmet | None) -> Iterator[Condition]:
    """Return the conditions of a Gateway about its `spec.tls`."""
    if (gateway["spec"].get("tls") or {}).get("backend") is not None:
        unmet = [certificate] if isinstance(certificate, Unmet) else []
        yield judged("ResolvedRefs", unmet, "All references resolved")
    frontend = _frontend(gateway)
    validations = [frontend.get("default") or {}, *(one["tls"] for one in frontend.get("perPort") or ())]
    if any((one.get("validation") or {}).get("mode") == _FALLBACK for one in validations):
        message = f"{_FALLBACK}: clients are admitted without a valid certificate"
        yield Condition("InsecureFrontendValidationMode", True, "ConfigurationChanged", message)


def with_certificate(fragments: Iterable[Fragment], certificate: Json | None) -> Iterator[Fragment]:
    """Return fragments whose backends of TLS are shown the Gateway's certificate, unless they say another."""
    fragments = list(fragments)
    dynamic = {one.value["name"] for one in fragments if one.place == "backends" and "dynamic" in one.value}
    for one in fragments:
        other = one.place not in ("routes", "backends", "policies")
        if certificate is None or other or (one.place == "policies" and _target(one.value) in dynamic):
            yield one
        elif one.place == "policies":
            # Of a targeted policy only what is about its target: not how the policy's own service is called.
            named = {name: one.value["policy"][name] for name in one.value["policy"] if name == "backendTLS"}
            policy = one.value["policy"] | _shown(named, certificate)
            yield replace(one, value=one.value | {"policy": policy}) if named else one
        elif one.place == "backends":
            yield replace(one, value=_shown(one.value, certificate))
        elif "backends" in one.value:
            yield replace(one, value=one.value | {"backends": _shown(one.value["backends"], certificate)})
        else:
            yield one


def _target(policy: Json) -> str | None:
    """Return the name of the backend that a policy targets."""
    found = policy.get("target", {}).get("backend", {}).get("backend", {}).get("name")
    return None if found is None else str(found)


def _shown(value: Any, certificate: Json) -> Any:
    if isinstance(value, list | tuple):
        return [_shown(one, certificate) for one in value]
    # Whoever a client names is shown nothing.
    if not isinstance(value, dict) or "dynamic" in value:
        return value
    found = {name: _shown(one, certificate) for name, one in value.items()}
    tls = found.get("backendTLS")
    if isinstance(tls, dict) and not tls.keys() & {"cert", "spiffe"}:
        found["backendTLS"] = tls | certificate
    return found
