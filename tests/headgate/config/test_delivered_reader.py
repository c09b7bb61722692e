"""A file with parts that are delivered to it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from headgate.config.delivered import DeliveredPart
from headgate.config.delivered_reader import DeliveredReader
from headgate.config.load import FileSource, LoadErrors, TextSource
from headgate.ir.backend import HostBackend, MissingBackend
from headgate.ir.gateway import Gateway

BIND = DeliveredPart("binds", "", (), '{"port": 8080}')
LISTENER = DeliveredPart("listeners", "bind", (), '{"name": "http"}')


def route(name: str, status: Any = 200, **more: Any) -> DeliveredPart:
    value = {"name": name, "matches": [{"path": {"exact": f"/{name}"}}], "policies": {"directResponse": {"status": status}}, **more}
    return DeliveredPart("routes", "listener", ((1, name),), json.dumps(value))


def backend(name: str) -> DeliveredPart:
    return DeliveredPart("backends", "", (), json.dumps({"name": name, "host": "127.0.0.1:1"}))


@pytest.fixture
def reader(tmp_path: Path) -> DeliveredReader:
    path = tmp_path / "config.yaml"
    path.write_text("config: {logging: {level: info}}\n")
    found = DeliveredReader(FileSource(str(path)))
    found.parts.change({"bind": BIND, "listener": LISTENER})
    return found


def served(gateway: Gateway) -> dict[str, Any]:
    [found] = [one for bind in gateway.binds for one in bind.listeners]
    return {one.name: one for one in found.routes}


def test_what_has_not_changed_is_not_read_again(reader: DeliveredReader) -> None:
    reader.parts.change({f"r{number}": route(f"r{number}") for number in range(200)})
    before = served(reader.load({}).gateway)
    reader.parts.change({"r7": route("r7", 201)})
    after = served(reader.load({}).gateway)
    assert reader.whole == 1
    assert [name for name in before if before[name] is not after[name]] == ["r7"]
    reader.parts.change({"new": route("new")}, ["r9"])
    assert "new" in served(reader.load({}).gateway)
    assert reader.whole == 1
    last = reader.load({})
    assert reader.load({}) is last


def test_any_sequence_of_changes_is_read_as_its_last_state(tmp_path: Path, reader: DeliveredReader) -> None:
    chance = random.Random(3)
    state: dict[str, DeliveredPart] = {"bind": BIND, "listener": LISTENER}
    for _ in range(40):
        new = {f"r{number}": route(f"r{number}", chance.randrange(200, 300)) for number in chance.sample(range(60), 3)}
        if chance.random() < 0.2:
            new["b"] = backend(f"b{chance.randrange(3)}")
        if chance.random() < 0.2:
            name = f"r{chance.randrange(60)}"
            new[name] = route(name, "bad")
        gone = [name for name in state if name.startswith("r") and name not in new and chance.random() < 0.05]
        for name in gone:
            del state[name]
        state |= new
        reader.parts.change(new, gone)
        found = reader.load({}).gateway
        reader.parts.settle()
        fresh = DeliveredReader(reader.source)
        # What is refused has its last good form, which a reader without a past does not know.
        fresh.parts.change({key: reader.parts.good.get(key, part) for key, part in state.items() if key not in reader.parts.refused or key in reader.parts.good})
        assert found == fresh.load({}).gateway


def test_parts_with_faults_are_refused_with_their_reasons(reader: DeliveredReader) -> None:
    bad = {"r1": route("r1", "x"), "r2": route("r2", matches=1), "r3": route("r3", nonsense=1), "r4": route("r4")}
    reader.parts.change({**bad, "b": DeliveredPart("backends", "", (), '{"name": "b", "nonsense": 1}')})
    assert list(served(reader.load({}).gateway)) == ["r4"]
    assert set(reader.parts.refused) == {"r1", "r2", "r3", "b"}
    assert reader.parts.refused["r3"].startswith("unknown field 'nonsense'")
    assert reader.parts.refused["r1"].startswith("policies.directResponse.status: ")
    assert "config.yaml" not in "".join(reader.parts.refused.values())


def test_a_route_whose_backend_comes_later_is_refused_until_then(reader: DeliveredReader) -> None:
    value = {"name": "r", "matches": [{"path": {"exact": "/r"}}], "backends": [{"backend": "b"}]}
    reader.parts.change({"r": DeliveredPart("routes", "listener", (), json.dumps(value))})
    reader.load({})
    refused = dict(reader.parts.refused)
    reader.parts.change({"b": backend("b")})
    assert list(served(reader.load({}).gateway)) == ["r"]
    assert reader.parts.refused == {}
    assert list(refused) in ([], ["r"])


def test_faults_of_the_file_are_told_with_their_places(reader: DeliveredReader) -> None:
    assert isinstance(reader.source, FileSource)
    path = Path(reader.source.path)
    for text in ("config:\n  nonsense: 1\n", "config: [\n"):
        path.write_text(text)
        with pytest.raises(LoadErrors) as caught:
            reader.load({})
        assert f"{path}:2" in str(caught.value)
    path.write_text("just text\n")
    with pytest.raises(LoadErrors):
        reader.load({})
    path.write_text("config: {logging: {level: $LEVEL}}\nbackends: [{name: own, host: '127.0.0.1:1'}]\n")
    reader.parts.change({"b": backend("b")})
    gateway = reader.load({"LEVEL": "debug"}).gateway
    assert gateway.process.log_level == "debug"
    assert len(gateway.backends) == 2


def test_a_part_that_meets_a_port_of_the_file_is_refused(reader: DeliveredReader) -> None:
    assert isinstance(reader.source, FileSource)
    Path(reader.source.path).write_text("binds: [{port: 8080, listeners: [{name: own}]}]\n")
    reader.parts.change({"r": route("r")})
    [found] = reader.load({}).gateway.binds
    assert [one.name for one in found.listeners] == ["own"]
    assert set(reader.parts.refused) == {"bind", "listener", "r"}


def test_a_text_may_stand_in_the_place_of_the_file() -> None:
    reader = DeliveredReader(TextSource("config: {}"))
    reader.parts.change({"bind": BIND, "listener": LISTENER, "r": route("r")})
    assert list(served(reader.load({}).gateway)) == ["r"]
    reader.parts.change({"r": route("q")})
    assert list(served(reader.load({}).gateway)) == ["q"]


def test_ports_listen_on_the_address_of_the_environment(reader: DeliveredReader) -> None:
    reader.parts.change({f"r{number}": route(f"r{number}") for number in range(50)})
    environ = {"BIND_ADDRESS": "127.0.0.3", "XDS_ADDRESS": "http://x"}
    assert [one.host for one in reader.load(environ).gateway.binds] == ["127.0.0.3"]
    reader.parts.change({"r1": route("r1", 404)})
    assert [one.host for one in reader.load(environ).gateway.binds] == ["127.0.0.3"]
    assert reader.whole == 1


def test_a_policy_of_a_gateway_takes_only_the_backend_away_that_cannot_have_it(reader: DeliveredReader) -> None:
    dynamic = DeliveredPart("backends", "", (), json.dumps({"name": "any", "dynamic": {"allowedPorts": [443]}}))
    target = {"gateway": {"gatewayName": "default", "gatewayNamespace": "default"}}
    said = {"name": {"name": "t", "namespace": "x"}, "target": target, "phase": "route", "policy": {"backendTunnel": {"proxy": {"host": "p.test:3128"}}}}
    routes = {name: route(name, policies={}, backends=[{"backend": name}]) for name in ("b1", "any")}
    reader.parts.change({**routes, "plain": backend("b1"), "dynamic": dynamic, "tunnel": DeliveredPart("policies", "", (), json.dumps(said))})
    found = {name: one.backends[0].backend for name, one in served(reader.load({}).gateway).items()}
    assert list(reader.parts.refused) == ["dynamic"]
    assert isinstance(found["any"], MissingBackend)
    assert isinstance(found["b1"], HostBackend)
    assert found["b1"].endpoint.tunnel is not None
