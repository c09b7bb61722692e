"""BackendTLSPolicies as policies of the file about Services and GatewayBackends, and their statuses.

https://gateway-api.sigs.k8s.io/api-types/backendtlspolicy/
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from headgate.cluster.snapshot import (
    CONFIG_MAP,
    GATEWAY_API,
    GATEWAY_BACKEND,
    SERVICE,
    GroupKind,
    ObjectKey,
    Snapshot,
    generation,
    key_of,
)
from headgate.cluster.translate.ancestors import MOST_ANCESTORS, by_reference
from headgate.cluster.translate.checked import faults_of_backend
from headgate.cluster.translate.conditions import Condition, ObjectStatus, Unmet, fails, holds, judged
from headgate.cluster.translate.fragments import Fragment, Json
from headgate.cluster.translate.gateway_backends import TranslatedBackend, file_name, sections, translate_backend
from headgate.cluster.translate.services import host

BACKEND_TLS_POLICY: Final = GroupKind(GATEWAY_API, "BackendTLSPolicy")
_Target = tuple[GroupKind, ObjectKey]
_SYSTEM: Final = "System"
_NO_CA: Final = "NoValidCACertificate"
# An authority that nobody has the key of, and that ended in 1970: with it no backend is believed.
_NOBODY: Final = """-----BEGIN CERTIFICATE-----
MIIBGDCBv6ADAgECAgEBMAoGCCqGSM49BAMCMBYxFDASBgNVBAMMC25vIHZhbGlk
IENBMB4XDTcwMDEwMTAwMDAwMFoXDTcwMDEwMjAwMDAwMFowFjEUMBIGA1UEAwwL
bm8gdmFsaWQgQ0EwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASWHDqYk/8Kuonu
TM/TQc3gIIpOlwIL63uvRRMgg5eukeW/6QlXziWV8JKX35W/xsTERprIBd3jCMwD
54G5PUg1MAoGCCqGSM49BAMCA0gAMEUCIBztjAQFsxbTcTF5FqfryDNvYXA5CXy2
drQOW8TeeejbAiEAmFyc9M2Hs51ydHV7uXiRVZWAK/keFWvFxtmJ3wuDASs=
-----END CERTIFICATE-----
"""


class TlsOfServices(NamedTuple):
    """For each Gateway the policies of what it uses; the statuses of all policies."""

    fragments: dict[ObjectKey, list[Fragment]]
    statuses: list[ObjectStatus]


class _Said(NamedTuple):
    """What a policy comes to. `refused`: why it is not accepted; it is in force then with an authority that nobody has.
    `unresolved`: references that lead nowhere."""

    value: Json
    refused: Unmet | None
    unresolved: list[Unmet]


def backend_tls(
    snapshot: Snapshot, used: Mapping[ObjectKey, Set[tuple[GroupKind, ObjectKey]]], controller: str
) -> TlsOfServices:
    """Translate all policies, the oldest first: of two for one target it holds. `used`: by Gateway its Services and
    GatewayBackends."""
    fragments: dict[ObjectKey, list[Fragment]] = {gateway: [] for gateway in used}
    statuses = []
    holders: dict[tuple[_Target, str], ObjectKey] = {}
    for policy in snapshot.oldest_first(BACKEND_TLS_POLICY):
        key, said = key_of(policy), _said(snapshot, policy)
        ancestors: dict[ObjectKey, list[Condition]] = {}
        won: list[tuple[_Target, Json, str]] = []
        lost: dict[_Target, list[Unmet]] = {}
        for aimed, form, section in _targets(snapshot, policy):
            holder = holders.setdefault((aimed, section), key)
            kind, place = aimed
            spot = f"{place}/{section}" if section else str(place)
            if holder == key:
                won.append((aimed, form, spot if kind == SERVICE else f"{kind.kind}/{spot}"))
            else:
                message = f"{kind.kind} {place} {section}".rstrip() + f" has the older policy {holder}"
                lost.setdefault(aimed, []).append(Unmet("Conflicted", message))
        for gateway, reached in used.items():
            held = [one for one in won if one[0] in reached]
            conflicts = [one for aimed, refusals in lost.items() if aimed in reached for one in refusals]
            if held or conflicts:
                fragments[gateway] += [_fragment(key, form, spot, said.value) for _, form, spot in held]
                ancestors[gateway] = _conditions(said, conflicts, whole=not held)
        statuses.append(ObjectStatus(BACKEND_TLS_POLICY, key, _status(policy, ancestors, controller)))
    return TlsOfServices(fragments, statuses)


def _targets(snapshot: Snapshot, policy: Json) -> Iterator[tuple[_Target, Json, str]]:
    """Return what a policy is for and is there, with the form of the file and the section."""
    for reference in policy["spec"]["targetRefs"]:
        key = ObjectKey(key_of(policy).namespace, reference["name"])
        kind, section = GroupKind(reference.get("group", ""), reference["kind"]), reference.get("sectionName") or ""
        found = snapshot.find(kind, *key)
        if kind not in (SERVICE, GATEWAY_BACKEND) or found is None:
            continue
        if kind == GATEWAY_BACKEND:
            made = translate_backend(snapshot, found)
            if isinstance(made, TranslatedBackend) and section in ("", *sections(made.form)):
                named = {"section": section} if section else {}
                yield (kind, key), {"backend": {"name": file_name(key), "namespace": "", **named}}, section
            continue
        form = {"hostname": host(key), "namespace": key.namespace}
        ports = [one["port"] for one in found["spec"].get("ports") or () if one.get("name") == section]
        if not section:
            yield (kind, key), {"service": form}, ""
        elif ports:
            yield (kind, key), {"service": form | {"port": ports[0]}}, section


def _said(snapshot: Snapshot, policy: Json) -> _Said:
    validation = policy["spec"]["validation"]
    value: Json = {"hostname": validation["hostname"]}
    if names := [one.get("hostname") or one.get("uri") for one in validation.get("subjectAltNames") or ()]:
        value["subjectAltNames"] = names
    unresolved: list[Unmet] = []
    refused: Unmet | None = None
    known = validation.get("wellKnownCACertificates")
    if references := validation.get("caCertificateRefs"):
        roots, unresolved = _authorities(snapshot, key_of(policy).namespace, references)
        value["root"] = roots or _NOBODY
        if not roots:
            refused = Unmet(_NO_CA, f"no valid CA certificate: {unresolved[0].message}")
    elif known != _SYSTEM:
        value["root"] = _NOBODY
        refused = Unmet("Invalid", f"wellKnownCACertificates {known!r} is not supported")
    if refused is None and (wrong := faults_of_backend({"host": "127.0.0.1:1", "policies": {"backendTLS": value}})):
        value, refused = {"hostname": validation["hostname"], "root": _NOBODY}, Unmet("Invalid", "; ".join(wrong))
    return _Said(value, refused, unresolved)


def _authorities(snapshot: Snapshot, namespace: str, references: list[Json]) -> tuple[str, list[Unmet]]:
    """Return the certificates that references lead to, and why others lead to none."""
    found: list[str] = []
    unresolved: list[Unmet] = []
    for one in references:
        kind, about = GroupKind(one["group"], one["kind"]), f"{one['kind']} {namespace}/{one['name']}"
        if kind != CONFIG_MAP:
            unresolved.append(Unmet("InvalidKind", f"{about}: CA certificates are in ConfigMaps"))
            continue
        held = snapshot.find(kind, namespace, one["name"])
        try:
            text = ((held or {}).get("data") or {})["ca.crt"]
            certificates = x509.load_pem_x509_certificates(text.encode())
        except KeyError:
            message = f"{about} not found" if held is None else f"{about} has no ca.crt"
            unresolved.append(Unmet("InvalidCACertificateRef", message))
        except ValueError:
            unresolved.append(Unmet("InvalidCACertificateRef", f"{about}: ca.crt has no certificates in PEM"))
        else:
            found += [each.public_bytes(Encoding.PEM).decode() for each in certificates]
    return "".join(found), unresolved


def _fragment(key: ObjectKey, form: Json, spot: str, value: Json) -> Fragment:
    name = {"name": f"{key.name}:backend-tls:{spot}", "namespace": key.namespace}
    entry = {"name": name, "target": {"backend": form}, "policy": {"backendTLS": value}}
    return Fragment(key=f"policy/backend/{key}:backend-tls:{spot}", place="policies", value=entry)


def _conditions(said: _Said, conflicts: list[Unmet], *, whole: bool) -> list[Condition]:
    accepted = holds("Accepted", "Accepted", "Policy accepted")
    if whole:
        accepted = judged("Accepted", conflicts, "")
    elif said.refused is not None:
        accepted = fails("Accepted", said.refused)
    elif conflicts:
        # The other targets have it.
        accepted = accepted._replace(message="; ".join(one.message for one in conflicts))
    return [accepted, judged("ResolvedRefs", said.unresolved, "All references resolved")]


def _status(policy: Json, ancestors: Mapping[ObjectKey, list[Condition]], controller: str) -> Json:
    about = generation(policy)
    found: list[Json] = [
        {
            "ancestorRef": {"group": GATEWAY_API, "kind": "Gateway", "namespace": key.namespace, "name": key.name},
            "controllerName": controller,
            "conditions": [one.printed(about) for one in conditions],
        }
        for key, conditions in ancestors.items()
    ]
    return {"ancestors": sorted(found, key=lambda one: by_reference(one["ancestorRef"]))[:MOST_ANCESTORS]}
