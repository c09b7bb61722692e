"""A file as the resources of one Gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from headgate.cluster.convert.backends import backend
from headgate.cluster.convert.conversion import Conversion
from headgate.cluster.convert.fields import WHOLE
from headgate.cluster.convert.frontend import frontend
from headgate.cluster.convert.objects import slug
from headgate.cluster.convert.ports import FilePort, ports
from headgate.cluster.convert.process import parameters
from headgate.cluster.convert.requests import traffic
from headgate.cluster.convert.routes import Routed
from headgate.cluster.convert.said import SaidMap
from headgate.cluster.convert.services import services
from headgate.cluster.convert.targeted import targeted
from headgate.cluster.snapshot import GATEWAY_API, OWN
from headgate.cluster.translate.fragments import Json

_TLS: Final = ("cert", "key", "moreCertificates", "root", "clientValidation", "mode")
_HTTP: Final = ("HTTP", "HTTPS")


class GatewayNames(NamedTuple):
    """What the Gateway is called, and its class and namespace."""

    gateway: str = "headgate"
    namespace: str = "default"
    class_name: str = "headgate"


class Converted(NamedTuple):
    """What a file came to: `of` has the objects and losses."""

    of: Conversion
    ports: list[FilePort]
    routed: Routed


def converted(root: SaidMap, folder: Path, names: GatewayNames) -> Converted:
    """Return the resources of a file. `folder`: where the files are that it names."""
    of = Conversion(folder, names.namespace, about=names.gateway, home=names.namespace)
    for name in WHOLE:
        if name in root:
            of.losses.add(root, name)
    found = ports(root, of.losses)
    services(of, root)
    _named_backends(of, root)
    _gateway(of, names, found, root.inner("config"))
    aims = [one["target"].inner("route").get("name") for one in root.maps("policies")]
    routed = Routed(of, names.gateway, aimed=frozenset(one for one in aims if one is not None))
    _routes(root, routed, found)
    for port in found:
        _of_listener(of, names, port)
    of.objects.origin = root.at("frontendPolicies")
    if made := frontend(of, root.inner("frontendPolicies")):
        _policy(of, names, f"{names.gateway}-frontend", {"frontend": made})
    for one in root.maps("policies"):
        targeted(of, one, names.gateway, found, routed.places)
    return Converted(of, found, routed)


def _policy(of: Conversion, names: GatewayNames, about: str, section: Json, listener: str = "") -> None:
    target = {"group": GATEWAY_API, "kind": "Gateway", "name": names.gateway}
    target |= {"sectionName": listener} if listener else {}
    of.objects.add("GatewayPolicy", names.namespace, about, {"spec": {"targetRefs": [target], **section}})


def _named_backends(of: Conversion, root: SaidMap) -> None:
    waiting = {one["name"]: one for one in root.maps("backends")}
    # Their policies may call others: names are known before.
    taken: set[str] = set()
    for name in waiting:
        plain, number = slug(name.removeprefix(f"{of.home}/")), 1
        while (own := plain if number == 1 else f"{plain}-{number}") in taken:
            number += 1
        taken.add(own)
        of.backends[name] = own
        if "host" in waiting[name]:
            of.hosts[name] = waiting[name]
    for name, one in waiting.items():
        if "llm" in one:
            # GatewayModels are made at the rules that lead to them.
            of.models[name] = one["llm"]
            del of.backends[name]
            for policy in (said := one.inner("policies")):
                of.losses.add(said, policy, "GatewayModels have their own policies")
            continue
        # Two with one content are two: policies may target one of them.
        of.objects.origin = (one.path, one.line)
        before = backend(of, one, of.backends[name])
        if before is None:
            del of.backends[name]
        else:
            of.backends[name] = before


def _gateway(of: Conversion, names: GatewayNames, found: list[FilePort], process: SaidMap) -> None:
    of.objects.origin = (process.path, process.line)
    taken: set[str] = set()
    listeners = []
    for port in found:
        plain, number = slug(port.name), 1
        own = plain
        while own in taken:
            number += 1
            own = f"{plain}-{port.port}" if number == 2 else f"{plain}-{port.port}-{number}"
        taken.add(own)
        port.object_name = own
        listeners.append(_listener(of, port))
    if not listeners:
        place = (process.path, process.line) if process else ("", 1)
        of.losses.at(*place, "a Gateway needs a listener, but the file opens no port")
        if process:
            parameters(of, process)
        return
    spec: Json = {"gatewayClassName": names.class_name, "listeners": listeners}
    trust = {}
    for port in found:
        if port.said.inner("tls").get("root"):
            trust[port.port] = _trust(of, port)
    if trust:
        per_port = [{"port": one, "tls": made} for one, made in trust.items()]
        spec["tls"] = {"frontend": {"default": {}, "perPort": per_port}}
    if process:
        reference = {"group": OWN, "kind": "GatewayParameters", "name": parameters(of, process)}
        spec["infrastructure"] = {"parametersRef": reference}
    of.objects.origin = ("", 0)
    of.objects.add("Gateway", names.namespace, names.gateway, {"spec": spec})


def _listener(of: Conversion, port: FilePort) -> Json:
    spaces = {one.get("namespace") or of.home for one in (*port.routes, *port.tcp_routes)}
    found: Json = {"name": port.object_name, "port": port.port, "protocol": port.protocol}
    if port.hostname:
        found["hostname"] = port.hostname
    if spaces - {of.home}:
        found["allowedRoutes"] = {"namespaces": {"from": "All"}}
    said = port.said.inner("tls")
    of.losses.rest(said, *_TLS)
    if said.get("mode", "static") != "static":
        of.losses.add(said, "mode")
    if "cert" in said and "key" in said:
        names = []
        for one in (said, *said.maps("moreCertificates")):
            entries = {"tls.crt": of.pem(one["cert"]), "tls.key": of.pem(one["key"])}
            about = f"{of.about}-{port.object_name}"
            names.append(of.objects.secret(of.namespace, about, entries, "kubernetes.io/tls"))
        found["tls"] = {"mode": "Terminate", "certificateRefs": [{"name": name} for name in names]}
    elif port.protocol == "TLS":
        found["tls"] = {"mode": "Passthrough"}
    return found


def _trust(of: Conversion, port: FilePort) -> Json:
    said = port.said.inner("tls")
    name = of.objects.authority(of.namespace, f"{of.about}-{port.object_name}-clients", of.pem(said["root"]))
    mode = said.get("clientValidation", "allowValidOnly")
    validation: Json = {"caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": name}]}
    if mode == "allowInsecureFallback":
        validation["mode"] = "AllowInsecureFallback"
    return {"validation": validation}


def _of_listener(of: Conversion, names: GatewayNames, port: FilePort) -> None:
    """Make the policies that stand on a listener."""
    beside = SaidMap(port.said.shape, port.said.path, port.said.line)
    for name, one in port.said.items():
        if name not in ("name", "namespace", "hostname", "protocol", "tls", "routes", "tcpRoutes", "policies", "port",
                        "listeners"):  # fmt: skip
            beside[name] = one
            beside.lines[name] = port.said.lines[name]
    said: SaidMap = port.said.get("policies", beside)
    of.objects.origin = (port.said.path, port.said.line)
    own = of.named(f"{names.gateway}-{port.object_name}")
    for section in traffic(own, said):
        _policy(of, names, own.about, {"traffic": {"phase": "PreRouting", **section}}, port.object_name)


def _routes(root: SaidMap, routed: Routed, found: list[FilePort]) -> None:
    of = routed.of
    groups = root.maps("routeGroups")
    for one in groups:
        routed.groups[one["name"]] = slug(one["name"])
    for one in groups:
        for index, route in enumerate(one["routes"]):
            routed.add(route, index, slug(one["name"]))
    listed = routed.attach(found)
    streams = {id(one): port for port in found for one in port.tcp_routes}
    for index, one in enumerate(listed):
        if id(one) in streams:
            # Where TLS ends, what is in it is a matter of TCPRoutes only without names.
            routed.add_stream(one, index, tls=streams[id(one)].protocol == "TLS")
        else:
            routed.add(one, index)
    for kind in ("routes", "tcpRoutes"):
        for one in root.maps(kind):
            if id(one) not in routed.parents:
                of.losses.at(one.path, one.line, "none of the converted listeners serves it")
