"""A cluster in which everything dies at random: what dies, what changes meanwhile, and who looks on."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from manifests import Json, http_route, to
from tests.end_to_end.acceptance_rig import SYSTEM, Lab
from tests.end_to_end.chaos_programs_rig import FLOW, JAIL, LEVEL, ApiServer, Program, Store, jailed
from tests.end_to_end.controller_rig import RunningController
from tests.end_to_end.faulty_api_rig import SAID, FaultyApi
from tests.end_to_end.processes import children_of, kill
from tests.end_to_end.running import PATIENCE

from headgate.cluster.controller.known import RETURN_S

MARK = "x-version"
STEADY, BUSY = "edge/steady", "edge/busy"
STEADY_ROUTES = 10
THROTTLED = SAID[429]


class Changes:
    """Changes routes all the time, and knows how they should be. `wanted`: by route its version, None if there is none."""

    def __init__(self, lab: Lab, server: ApiServer, count: int, seed: int) -> None:
        self.lab, self.server = lab, server
        self.wanted: dict[str, int | None] = {}
        self.made = 0
        self.failed: list[str] = []
        self._random = random.Random(seed)
        self._names = [f"shop/busy-{number:04d}" for number in range(count)]
        self._on, self._idle, self._ended = threading.Event(), threading.Event(), False
        self._idle.set()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        for name in self._names:
            self._change(name, 0)
        self._thread.start()

    def pause(self, paused: bool) -> None:
        if not paused:
            self._on.set()
            return
        self._on.clear()
        # One under way ends when the API server has answered it.
        self._idle.wait()

    def close(self) -> None:
        self._ended = True
        self._on.set()
        if self._thread.is_alive():
            self._thread.join(PATIENCE)

    def gateway_of(self, name: str) -> str:
        return STEADY if int(name[-4:]) % 2 else BUSY

    def _run(self) -> None:
        number = 0
        while not self._ended:
            self._on.wait()
            self._idle.clear()
            number += 1
            try:
                if not self._ended and self._on.is_set():
                    self._change(self._random.choice(self._names), number)
            except Exception as error:  # the test is told
                self.failed.append(f"{type(error).__name__}: {error}")
                self._ended = True
            finally:
                self._idle.set()
            time.sleep(0.005)

    def _change(self, name: str, number: int) -> None:
        if number and self._random.random() < 0.1:
            self.wanted[name] = None
            self._sent("DELETE", name, None)
        else:
            self.wanted[name] = number
            self._sent("PATCH", name, versioned(name, self.gateway_of(name), number))
        self.made += 1

    def _sent(self, method: str, name: str, document: Json | None) -> None:
        self.server.send(method, self.lab._path("HTTPRoute", name), document)


def versioned(name: str, parent: str, version: int | str) -> Json:
    """Return a route of a host of its own, whose backend is told a version."""
    edit = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": MARK, "value": str(version)}]}}
    namespace, _, own = parent.partition("/")
    found = http_route(
        name, {"backendRefs": [to()], "filters": [edit]}, parent={"name": own, "namespace": namespace}, hostnames=(host_of(name),)
    )
    found["metadata"] = {key: one for key, one in found["metadata"].items() if key in ("name", "namespace")}
    return found


def host_of(name: str) -> str:
    return f"{name.partition('/')[2]}.test"


class Asking:
    """Asks one gateway on a connection that it opens again if it has to."""

    def __init__(self, address: str, port: int) -> None:
        self._connection = http.client.HTTPConnection(address, port, timeout=PATIENCE)

    def ask(self, host: str) -> tuple[int, str]:
        """Return status and content, in lower case. Raises OSError and HTTPException."""
        try:
            self._connection.request("GET", "/", headers={"host": host})
            answer = self._connection.getresponse()
            return answer.status, answer.read().decode().lower().replace("\r", "")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """The next question has a new connection."""
        self._connection.close()


class Traffic:
    """Asks for routes that nobody changes, on connections that stay and on new ones. `lost`: what did not come back well."""

    def __init__(self, address: str, port: int) -> None:
        self.lost: list[str] = []
        self.asked = 0
        self._place, self._ended = (address, port), False
        self._threads = [threading.Thread(target=self._run, args=(kept,), daemon=True) for kept in (True, False)]

    def begin(self) -> None:
        for one in self._threads:
            one.start()

    def close(self) -> None:
        self._ended = True
        for one in self._threads:
            one.join(PATIENCE)

    def _run(self, kept: bool) -> None:
        number, asking = 0, Asking(*self._place)
        while not self._ended:
            number += 1
            host = host_of(f"shop/steady-{number % STEADY_ROUTES}")
            began = time.strftime("%H:%M:%S")
            try:
                status, text = asking.ask(host)
                if status != 200 or f"{MARK}: steady" not in text:
                    self.lost.append(f"{began} {host}: {status} {text[:200]}")
            except (OSError, http.client.HTTPException) as error:
                self.lost.append(f"{began} {host}: {type(error).__name__} {error}")
            if not kept:
                asking.close()
            self.asked += 1
            time.sleep(0.005)
        asking.close()


class ChaosLab:
    """`api`: the way that the controller has to the API server. `programs`: those of the API server, none of the small one."""

    def __init__(
        self, lab: Lab, api: FaultyApi, programs: dict[str, Program], store: Store | None, routes: int, seed: int
    ) -> None:
        self.lab, self.api, self.programs, self.store = lab, api, programs, store
        self.server = ApiServer(lab.client, programs.values())
        self.random = random.Random(seed)
        self.changes = Changes(lab, self.server, routes, seed + 1)
        self.told: list[str] = []
        # Whether data planes came back to a controller later than it waits for them: the machine was too busy.
        self.late = False
        self._asking: dict[str, Asking] = {}
        self.began = time.monotonic()
        document = yaml.safe_load(lab.kubeconfig.read_text())
        document["clusters"][0]["cluster"] = {"server": api.url}
        self.kubeconfig = lab.folder / "kubeconfig-of-chaos"
        self.kubeconfig.write_text(yaml.safe_dump(document))
        self.range = f"127.{100 + lab.xds % 100}.{lab.xds // 100 % 250}.0/24"
        self.controller = self.start_controller()

    # -- what dies -----------------------------------------------------------------------------------------------------
    def start_controller(self) -> RunningController:
        words = ("--local-gateways", self.range, "--local-folder", str(self.lab.folder / "gateways"))
        found = RunningController(
            self.kubeconfig, self.lab.folder, *words, HEADGATE_NAMESPACE=SYSTEM, HEADGATE_XDS_PORT=str(self.lab.xds)
        )
        self.lab.controllers.append(found)
        self._return = threading.Thread(target=self._await_return, args=(found, time.monotonic()), daemon=True)
        self._return.start()
        return found

    def _await_return(self, found: RunningController, began: float) -> None:
        """Note whether data planes come back in time, as long as a controller lives."""
        with contextlib.suppress(AssertionError):
            while found.process.poll() is None and streams(found) != 2:
                time.sleep(0.2)
        self.late = self.late or time.monotonic() - began > RETURN_S

    def kill_controller(self, pause: float) -> None:
        self.controller.process.send_signal(signal.SIGKILL)
        self.controller.process.wait()
        time.sleep(pause)
        self.controller = self.start_controller()

    def _plane(self) -> int | None:
        with contextlib.suppress(OSError, ValueError):
            pid = int(json.loads((self.lab.folder / "gateways" / "edge.busy" / "process.json").read_text())["pid"])
            return pid if b"headgate" in Path(f"/proc/{pid}/cmdline").read_bytes() else None
        return None

    def kill_plane(self, _pause: float) -> None:
        """Who started it starts it again."""
        if (pid := self._plane()) is not None:
            kill(pid)

    def kill_worker(self, _pause: float) -> None:
        if (pid := self._plane()) is not None and (below := children_of(pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.random.choice(below), signal.SIGKILL)

    def kill_program(self, name: str, pause: float) -> None:
        self.programs[name].kill()
        time.sleep(pause)
        self.programs[name].start()

    def compact(self, store: Store, pause: float) -> None:
        """Everything is listed slowly, while the store forgets what was when a list began."""
        self.api.slow(True)
        self.api.expire()
        ends = time.monotonic() + pause
        self.server.until(lambda: store.compact() and time.monotonic() > ends, lambda: "the store is not reachable")
        self.api.slow(False)

    def turn_away(self, pause: float) -> None:
        """The server itself answers 429 to the controller, whatever it asks."""
        self.server.send("PATCH", f"{FLOW}/prioritylevelconfigurations/{JAIL}", LEVEL)
        before = self.api.did[THROTTLED]
        self.server.send("PATCH", f"{FLOW}/flowschemas/{JAIL}", jailed(SYSTEM, "headgate"))
        self.until(lambda: self.api.did[THROTTLED] > before, lambda: "the controller is not turned away")
        time.sleep(pause)
        self.server.send("DELETE", f"{FLOW}/flowschemas/{JAIL}")

    def for_a_while(self, fault: Callable[[bool], None], pause: float) -> None:
        fault(True)
        time.sleep(pause)
        fault(False)

    def faults(self) -> dict[str, Callable[[float], None]]:
        found: dict[str, Callable[[float], None]] = {
            "controller dies": self.kill_controller,
            "data plane dies": self.kill_plane,
            "worker dies": self.kill_worker,
            "watches are cut": lambda _pause: self.api.cut(),
            "watches expire": lambda _pause: self.api.expire(),
            "requests are turned away": lambda pause: self.for_a_while(self.api.throttle, pause),
            "lists are slow": lambda pause: (self.api.slow(True), self.api.expire(), time.sleep(pause), self.api.slow(False))[-1],
            "caches are old": lambda pause: self.for_a_while(self.api.hold, pause),
        }
        for name in self.programs:
            found[f"{name} dies"] = lambda pause, name=name: self.kill_program(name, pause)  # type: ignore[misc]
            found[f"{name} hangs"] = lambda pause, name=name: self.for_a_while(self.programs[name].hang, pause)  # type: ignore[misc]
        if (store := self.store) is not None:
            found["the store is compacted"] = lambda pause: self.compact(store, pause)
            found["the server turns the controller away"] = self.turn_away
        return found

    def strike(self, name: str, pause: float) -> None:
        self.told.append(f"{time.monotonic() - self.began:.1f} s: {name}, for {pause:.1f} s")
        self.faults()[name](pause)
        self.server.revive()

    # -- what must be so in the end ------------------------------------------------------------------------------------
    def until(self, holds: Callable[[], object], told: Callable[[], object]) -> None:
        def checked() -> object:
            assert self.controller.process.poll() is None, self.controller.log.read_text()[-6000:]
            return holds()

        def said() -> str:
            history = "\n".join(self.told[-12:])
            return f"{told()}\n{history}\n{self.controller.log.read_text()[-6000:]}"

        self.server.until(checked, said)

    def get(self, kind: str, name: str) -> Json:
        path = self.lab._path(kind, name)
        answer = self.server.answer(lambda: self.lab.client.get(path))
        return dict(answer.json()) if answer.status_code == 200 else {}

    def listed(self) -> dict[str, Json]:
        answer = self.server.answer(lambda: self.lab.client.get("/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes"))
        assert answer.status_code == 200, answer.text
        return {f"shop/{one['metadata']['name']}": one for one in answer.json()["items"]}

    def settle(self) -> None:
        """Wait until gateways serve what is wanted, and statuses say so."""
        self.changes.pause(True)
        assert not self.changes.failed, self.changes.failed
        left = dict(self.changes.wanted)

        def served() -> bool:
            for name, version in list(left.items()):
                if not self._serves(name, version):
                    return False
                del left[name]
            return True

        self.until(served, lambda: f"not in force: {list(left.items())[:3]}")
        self.until(lambda: streams(self.controller) == 2, lambda: "data planes do not come back")
        self._return.join()
        self.until(lambda: not self.untrue(), self.untrue)

    def address_of(self, name: str) -> str:
        found: list[str] = []

        def placed() -> bool:
            found[:] = [one["value"] for one in (self.get("Gateway", name).get("status") or {}).get("addresses") or ()]
            return bool(found)

        self.until(placed, lambda: f"{name} has no address")
        return found[0]

    def _serves(self, name: str, version: int | None) -> bool:
        gateway = self.changes.gateway_of(name)
        if gateway not in self._asking:
            self._asking[gateway] = Asking(self.address_of(gateway), self.lab.port)
        try:
            status, text = self._asking[gateway].ask(host_of(name))
        except (OSError, http.client.HTTPException):
            return False
        return status == 404 if version is None else status == 200 and f"{MARK}: {version}\n" in text

    def untrue(self) -> list[str]:
        """Return what statuses do not say, or say wrongly."""
        routes, found = self.listed(), []
        wanted = {name for name, version in self.changes.wanted.items() if version is not None}
        steady = {f"shop/steady-{number}" for number in range(STEADY_ROUTES)}
        if routes.keys() != wanted | steady:
            found.append(f"routes: {sorted(routes.keys() ^ (wanted | steady))[:3]}")
        for name, one in routes.items():
            conditions = [each for parent in (one.get("status") or {}).get("parents") or () for each in parent["conditions"]]
            good = {each["type"] for each in conditions if each["status"] == "True"}
            newest = all(each["observedGeneration"] == one["metadata"]["generation"] for each in conditions)
            if good != {"Accepted", "ResolvedRefs"} or not newest:
                found.append(f"{name}: {conditions}")
        for key in (STEADY, BUSY):
            found += self._untrue_of_gateway(key, len(steady) * (key == STEADY), wanted)
        return found

    def _untrue_of_gateway(self, key: str, more: int, wanted: set[str]) -> list[str]:
        gateway = self.get("Gateway", key)
        count = more + sum(self.changes.gateway_of(name) == key for name in wanted)
        status = gateway.get("status") or {}
        attached = [one["attachedRoutes"] for one in status.get("listeners") or ()]
        held = {one["type"]: one["status"] for one in status.get("conditions") or ()}
        found = [] if attached == [count] else [f"{key}: attachedRoutes {attached}, wanted {count}"]
        if held != {"Accepted": "True", "Programmed": "True"}:
            found.append(f"{key}: {status.get('conditions')}")
        return found

    def attached(self, name: str) -> int:
        """Return how many routes the status of a Gateway counts."""
        return sum(int(one["attachedRoutes"]) for one in self.get("Gateway", name)["status"]["listeners"])

    def transitions(self) -> dict[str, Any]:
        """Return what must never change: conditions of what nobody touches, with the times of their last change, and the
        versions of routes that nobody has a reason to write to."""
        gateway = self.get("Gateway", STEADY)["status"]
        found: dict[str, Any] = {one["type"]: (one["status"], one["lastTransitionTime"]) for one in gateway["conditions"]}
        listener = gateway["listeners"][0]["conditions"]
        found |= {f"listener {one['type']}": (one["status"], one["lastTransitionTime"]) for one in listener}
        routes = self.listed()
        for number in range(STEADY_ROUTES):
            about = routes[f"shop/steady-{number}"]["metadata"]
            found[about["name"]] = about["resourceVersion"]
        return found

    def accepted_since(self) -> dict[tuple[str, str], list[str]]:
        """Return by route and uid when its conditions last changed: they are true from the beginning."""
        return {
            (name, one["metadata"]["uid"]): [
                each["lastTransitionTime"] for parent in one["status"]["parents"] for each in parent["conditions"]
            ]
            for name, one in self.listed().items()
        }

    def close(self) -> None:
        self.changes.close()
        self.server.revive()
        for one in self._asking.values():
            one.close()


def streams(controller: RunningController) -> int:
    """Return how many data planes a controller has."""
    answer = controller.get(controller.metrics, "/metrics")
    found = [] if answer is None else re.findall(r"_xds_streams (\d+)", answer.text)
    return int(found[0]) if found else 0


def seconds() -> float:
    """Return how long a run is to last: 0 for a short one."""
    return float(os.environ.get("HEADGATE_CHAOS", "0"))
