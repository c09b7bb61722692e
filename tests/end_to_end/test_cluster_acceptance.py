"""What the control plane has to do, from resources to answers: `headgate controller` with gateways that it starts here."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest
from cluster_lab import RunningCluster, built, kubernetes
from envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryRequest
from manifests import FROM_SHOP, Json, gateway, grant, http_route, listener, made, tcp_route, to
from tests.end_to_end.acceptance_rig import Lab, namespaces, real_lab, small_lab
from tests.end_to_end.running import PATIENCE

from headgate.cluster.deliver.wire import DELTA_METHOD, SERVICE, TYPE_URL

__all__ = ["kubernetes"]
HELD = {"Accepted": ("True", "Accepted"), "ResolvedRefs": ("True", "ResolvedRefs")}
# The list says 10,000, which `bench.cluster.in_force` has and measures.
MANY = int(os.environ.get("HEADGATE_ACCEPTANCE_ROUTES", "100"))
FINE = {"Accepted": ("True", "Valid"), "Attached": ("True", "Attached")}
ROUTE = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute"}
OWNER = {"group": "gateway.networking.k8s.io", "kind": "Gateway"}


@pytest.fixture(scope="module", params=["small", "real"])
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A cluster with Gateways `edge/main` and `edge/other`, and a Service `shop/cart`."""
    folder = tmp_path_factory.mktemp("acceptance")
    with ExitStack() as stack:
        if request.param == "small":
            found = stack.enter_context(small_lab(folder))
        else:
            built()
            cluster: RunningCluster = request.getfixturevalue("kubernetes")
            found = stack.enter_context(real_lab(cluster, folder))
        found.apply(*namespaces("edge", "shop", "store", "default"))
        found.served("shop/cart")
        found.served("store/stock")
        found.start_local()
        for name in ("edge/main", "edge/other"):
            found.apply(gateway(listener(port=found.port), name=name))
        for name in ("edge/main", "edge/other"):
            found.address_of(name)
        yield found


def attached(lab: Lab) -> int:
    return int(lab.status("Gateway", "edge/main")["listeners"][0]["attachedRoutes"])


def policy(name: str, target: Json, **spec: Json) -> Json:
    return made("GatewayPolicy", name, {"targetRefs": [target], **spec}, "headgate.dev/v1alpha1")


def header(name: str, value: str) -> Json:
    return {"headerModifiers": {"request": {"set": [{"name": name, "value": value}]}}}


def test_a_route_is_served_and_goes(lab: Lab) -> None:
    """Nos. 1 and 2."""
    before = attached(lab)
    lab.apply(http_route("shop/cart", hostnames=("cart.test",)))
    assert lab.answers("edge/main", "cart.test", 200, "/hello").text.startswith("/hello\n")
    lab.until(lambda: lab.parents("HTTPRoute", "shop/cart") == [HELD])
    lab.until(lambda: attached(lab) == before + 1)
    assert lab.conditions("Gateway", "edge/main") == {"Accepted": ("True", "Accepted"), "Programmed": ("True", "Programmed")}
    assert lab.conditions("GatewayClass", "headgate")["Accepted"] == ("True", "Accepted")
    lab.delete("HTTPRoute", "shop/cart")
    lab.answers("edge/main", "cart.test", 404)
    lab.until(lambda: attached(lab) == before)


def test_another_namespace_is_reached_as_long_as_it_grants_it(lab: Lab) -> None:
    """No. 3."""
    lab.apply(http_route("shop/stock", {"backendRefs": [to("stock", namespace="store")]}, hostnames=("stock.test",)))
    for granted in (False, True, False):
        if granted:
            lab.apply(grant("store/cart", FROM_SHOP, {"group": "", "kind": "Service"}))
        else:
            lab.delete("ReferenceGrant", "store/cart")
        said = ("True", "ResolvedRefs") if granted else ("False", "RefNotPermitted")
        lab.until(lambda said=said: lab.parents("HTTPRoute", "shop/stock") == [{**HELD, "ResolvedRefs": said}])
        lab.answers("edge/main", "stock.test", 200 if granted else 500)
    lab.delete("HTTPRoute", "shop/stock")


def test_a_policy_waits_for_its_route(lab: Lab) -> None:
    """No. 4."""
    lab.apply(policy("shop/late", {**ROUTE, "name": "late"}, traffic=header("x-late", "yes")))
    lab.until(lambda: lab.ancestors("shop/late") == {"StatusSummary": {"Attached": ("False", "Pending")}})
    lab.apply(http_route("shop/late", hostnames=("late.test",)))
    lab.until(lambda: lab.ancestors("shop/late") == {"main": FINE})
    lab.until(lambda: "x-late: yes" in lab.answers("edge/main", "late.test", 200).text)
    for kind in ("HTTPRoute", "GatewayPolicy"):
        lab.delete(kind, "shop/late")


def test_the_good_part_of_a_policy_is_in_force(lab: Lab) -> None:
    """No. 5."""
    lab.apply(http_route("shop/part", hostnames=("part.test",)))
    target, good = {**ROUTE, "name": "part"}, header("x-part", "yes")
    bad = {"transformation": {"request": {"set": [{"name": "x-bad", "value": "no_such_function(1)"}]}}}
    lab.apply(policy("shop/part", target, traffic=good | bad))
    lab.until(lambda: partly(lab, "traffic.transformation "))
    lab.until(lambda: "x-part: yes" in lab.answers("edge/main", "part.test", 200).text)
    # A part that protects cannot be left out: nobody passes.
    lab.delete("GatewayPolicy", "shop/part")
    lab.apply(policy("shop/part", target, traffic=good | {"extAuth": {"backendRef": {"name": "nowhere", "port": 1}, "http": {}}}))
    lab.answers("edge/main", "part.test", 403)
    lab.until(lambda: partly(lab, "traffic.extAuth "))
    lab.delete("GatewayPolicy", "shop/part")
    lab.apply(policy("shop/part", target, traffic=good | {"timeouts": {"request": "3s"}}))
    lab.until(lambda: "x-part: yes" in lab.answers("edge/main", "part.test", 200).text)
    lab.until(lambda: lab.ancestors("shop/part") == {"main": FINE})
    for kind in ("HTTPRoute", "GatewayPolicy"):
        lab.delete(kind, "shop/part")


def partly(lab: Lab, fault: str) -> bool:
    """Tell whether a policy is accepted without one of its parts, which its status names."""
    entries = lab.status("GatewayPolicy", "shop/part").get("ancestors") or ()
    return any(
        (one["type"], one["status"], one["reason"]) == ("Accepted", "True", "PartiallyValid") and one["message"].startswith(fault)
        for entry in entries
        for one in entry["conditions"]
    )


def test_what_is_one_gateways_is_not_sent_to_another(lab: Lab) -> None:
    """No. 6."""
    lab.apply(http_route("shop/mine", hostnames=("mine.test",)))
    lab.apply(policy("edge/mine", {**OWNER, "name": "main"}, traffic=header("x-mine", "yes")))
    lab.until(lambda: "x-mine: yes" in lab.answers("edge/main", "mine.test", 200).text)
    folder = lab.folder / "gateways"
    lab.until(lambda: "mine" in kept(folder / "edge.main"))
    assert "mine" not in kept(folder / "edge.other")
    for kind, name in (("HTTPRoute", "shop/mine"), ("GatewayPolicy", "edge/mine")):
        lab.delete(kind, name)


def kept(folder: Path) -> str:
    """Return what a data plane keeps of its state."""
    return "".join(one.read_text() for one in (folder / "state").iterdir() if one.is_file())


def test_a_token_of_another_account_gets_no_stream(lab: Lab) -> None:
    """No. 9."""
    main, other = (lab.folder / "gateways" / f"edge.{name}" for name in ("main", "other"))
    credentials = grpc.ssl_channel_credentials((main / "ca.crt").read_bytes())
    # An address: the library may ask name servers for localhost.
    options = (("grpc.ssl_target_name_override", "localhost"),)
    with grpc.secure_channel(f"127.0.0.1:{lab.xds}", credentials, options) as channel:
        call = channel.stream_stream(f"/{SERVICE}/{DELTA_METHOD}", DeltaDiscoveryRequest.SerializeToString, lambda data: data)
        request = DeltaDiscoveryRequest(type_url=TYPE_URL)
        request.node.id = "headgate~127.0.0.1~thief.edge~edge.svc.cluster.local"
        request.node.metadata.update({"role": "edge~main"})
        metadata = (("authorization", f"Bearer {(other / 'xds-token').read_text()}"),)
        with pytest.raises(grpc.RpcError) as refused:
            next(call(iter([request]), metadata=metadata, timeout=PATIENCE, wait_for_ready=True))
        assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED  # type: ignore[attr-defined]
        assert refused.value.details() == "service account edge/other is not that of Gateway edge/main"  # type: ignore[attr-defined]


def test_of_listeners_in_conflict_the_later_one_is_not_served(lab: Lab) -> None:
    """No. 11."""
    first, second = listener("one", lab.port), listener("two", lab.port, "TLS", tls={"mode": "Passthrough"})
    lab.apply(gateway(first, second, name="edge/conflict"), http_route("shop/conflict", parent={"name": "conflict", "namespace": "edge"}))

    def judged() -> list[tuple[str, bool]]:
        found = lab.status("Gateway", "edge/conflict").get("listeners") or ()
        return [(one["name"], any(each["type"] == "Conflicted" and each["status"] == "True" for each in one["conditions"])) for one in found]

    lab.until(lambda: judged() == [("one", False), ("two", True)])
    lab.answers("edge/conflict", "any.test", 200)
    for kind, name in (("HTTPRoute", "shop/conflict"), ("Gateway", "edge/conflict")):
        lab.delete(kind, name)


def test_a_tcp_route_is_served(lab: Lab) -> None:
    """Beside the list: the conformance suite has no test of them."""
    parent = {"name": "raw", "namespace": "edge"}
    lab.apply(gateway(listener("raw", lab.port, "TCP"), name="edge/raw"), tcp_route("shop/bytes", parent=parent))
    lab.until(lambda: lab.parents("TCPRoute", "shop/bytes") == [HELD])
    # The peer gets what the client has sent, as it was.
    text = lab.answers("edge/raw", "any.test", 200, "/bytes").text
    assert text.startswith("/bytes\n")
    assert "host: any.test\n" in text.lower()
    assert "forwarded" not in text.lower()
    for kind, name in (("TCPRoute", "shop/bytes"), ("Gateway", "edge/raw")):
        lab.delete(kind, name)


def test_many_routes_are_served_and_one_of_them_changes(lab: Lab) -> None:
    """No. 12: a gateway that comes to routes that are there already has them all with its first state."""
    names = [f"many-{number:04d}" for number in range(MANY)]
    parent = {"name": "many", "namespace": "edge"}
    for name in names:
        lab.apply(http_route(f"shop/{name}", parent=parent, hostnames=(f"{name}.test",)))
    lab.apply(gateway(listener(port=lab.port), name="edge/many"))
    lab.address_of("edge/many")
    log = lab.folder / "gateways" / "edge.many" / "log.txt"
    lab.until(lambda: (lab.status("Gateway", "edge/many").get("listeners") or [{}])[0].get("attachedRoutes") == MANY)
    for name in names:
        lab.answers("edge/many", f"{name}.test", 200)
    lab.until(lambda: all(lab.parents("HTTPRoute", f"shop/{name}") == [HELD] for name in names))
    before = log.read_text().count("configuration received")
    lab.apply(http_route(f"shop/{names[-1]}", parent=parent, hostnames=("changed.test",)))
    lab.answers("edge/many", "changed.test", 200)
    lab.answers("edge/many", f"{names[-1]}.test", 404)
    lab.answers("edge/many", f"{names[0]}.test", 200)
    # It is logged after clients may see it.
    lab.until(lambda: log.read_text().count("configuration received") > before)
    lines = [one for one in log.read_text().splitlines() if "configuration received" in one]
    # Nothing but the route that has changed was sent.
    assert len(lines) == before + 1
    assert "changed=1 removed=0 rejected=0" in lines[-1]
    for kind, name in (("Gateway", "edge/many"), *(("HTTPRoute", f"shop/{name}") for name in names)):
        lab.delete(kind, name)


def test_gateways_serve_on_while_the_controller_starts_again(lab: Lab) -> None:
    """No. 10, at the end: it ends the controller that the others have."""
    lab.apply(http_route("shop/stay", hostnames=("stay.test",)))
    lab.answers("edge/main", "stay.test", 200)
    log = lab.folder / "gateways" / "edge.main" / "log.txt"
    process = json.loads((log.parent / "process.json").read_text())["pid"]
    first = lab.controllers[-1]
    os.kill(first.process.pid, signal.SIGKILL)
    first.process.wait()
    assert lab.answers("edge/main", "stay.test", 200)
    received = log.read_text().count("configuration received")
    since = transitions(lab)
    lab.start_local()
    lab.until(lambda: log.read_text().count("configuration received") > received, log.read_text())
    line = [one for one in log.read_text().splitlines() if "configuration received" in one][received]
    assert "changed=0 removed=0 rejected=0" in line
    assert json.loads((log.parent / "process.json").read_text())["pid"] == process
    lab.apply(http_route("shop/after", hostnames=("after.test",)))
    lab.answers("edge/main", "after.test", 200)
    # No condition was taken away and given back meanwhile.
    assert transitions(lab) == since
    for name in ("stay", "after"):
        lab.delete("HTTPRoute", f"shop/{name}")


def transitions(lab: Lab) -> dict[str, tuple[str, str]]:
    conditions = lab.status("Gateway", "edge/main")["conditions"]
    return {one["type"]: (one["status"], one["lastTransitionTime"]) for one in conditions}
