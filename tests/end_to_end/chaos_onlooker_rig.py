"""Who reads every version of a status that the API server stores, and notes each that says something untrue."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import httpx
from manifests import Json

GROUP = "/apis/gateway.networking.k8s.io/v1"
# Seconds without an event after which it looks whether it is to end.
SILENT = 2.0
Take = Callable[[str, Json], None]


@dataclass(frozen=True)
class Seen:
    """What was seen of a route last. `judged`: whether its status said something."""

    uid: str
    judged: bool
    observed: int


class Onlooker:
    """Watches routes that are all valid, and Gateways, at the API server itself. `gateway`: has `least` routes at all times.

    `flaps`: what must never be said, whenever and for however short a time:
    that a route is not accepted, nothing of one of which something was said, an older generation than before or one
    that is still to come, and fewer routes at the Gateway than ever were there.
    """

    def __init__(self, client: httpx.Client, gateway: str, least: int) -> None:
        self.flaps: list[str] = []
        # How many versions of objects it has read.
        self.read = 0
        self._client, self._least, self._ended = client, least, False
        self._namespace, _, self._gateway = gateway.partition("/")
        self._seen: dict[str, Seen] = {}
        places: dict[str, Take] = {
            f"{GROUP}/namespaces/shop/httproutes": self._take_route,
            f"{GROUP}/namespaces/{self._namespace}/gateways": self._take_gateway,
        }
        self._threads = [threading.Thread(target=self._run, args=pair, daemon=True) for pair in places.items()]

    def begin(self) -> None:
        for one in self._threads:
            one.start()

    def close(self) -> None:
        self._ended = True
        for one in self._threads:
            one.join(60)

    def _run(self, path: str, take: Take) -> None:
        while not self._ended:
            with contextlib.suppress(httpx.HTTPError, ValueError):
                self._follow(path, take)
            time.sleep(0.1)

    def _follow(self, path: str, take: Take) -> None:
        """List and watch. What happens between two watches is seen in the list, as far as it has lasted."""
        found = self._client.get(path).raise_for_status().json()
        for one in found["items"]:
            take("ADDED", one)
        asked = {"watch": "1", "resourceVersion": found["metadata"]["resourceVersion"]}
        with self._client.stream("GET", path, params=asked, timeout=httpx.Timeout(60, read=SILENT)) as answer:
            for line in answer.raise_for_status().iter_lines():
                event = json.loads(line)
                if self._ended or event["type"] == "ERROR":
                    return
                take(event["type"], event["object"])

    def _take_route(self, kind: str, route: Json) -> None:
        about, before = route["metadata"], self._seen.get(route["metadata"]["name"])
        self.read += 1
        if kind == "DELETED":
            self._seen.pop(about["name"], None)
            return
        parents = (route.get("status") or {}).get("parents") or []
        conditions = [each for one in parents for each in one["conditions"]]
        observed = min((each["observedGeneration"] for each in conditions), default=0)
        newest = max((each["observedGeneration"] for each in conditions), default=0)
        if before is not None and before.uid == about["uid"]:
            if before.judged and not parents:
                self._note(route, "nothing is said of it any more")
            if observed < before.observed:
                self._note(route, f"generation {observed} after {before.observed}")
        if newest > about["generation"]:
            self._note(route, f"generation {newest} of {about['generation']}")
        if any(each["status"] != "True" for each in conditions):
            self._note(route, str(conditions))
        self._seen[about["name"]] = Seen(about["uid"], bool(parents), observed)

    def _take_gateway(self, kind: str, gateway: Json) -> None:
        self.read += 1
        if gateway["metadata"]["name"] != self._gateway or kind == "DELETED":
            return
        for one in (gateway.get("status") or {}).get("listeners") or ():
            if one["attachedRoutes"] < self._least:
                self._note(gateway, f"attachedRoutes {one['attachedRoutes']}, never less than {self._least}")

    def _note(self, found: Json, what: str) -> None:
        self.flaps.append(f"{time.strftime('%H:%M:%S')} {found['metadata']['name']}: {what}")
