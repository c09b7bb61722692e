"""Runs gateways as processes of this machine instead of pods: for tests, and for trying a cluster out on a laptop."""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headgate.cluster.calls import ApiCalls
from headgate.cluster.deploy import local_process, owned_kinds
from headgate.cluster.deploy.address_range import AddressRange, can_listen
from headgate.cluster.deploy.local_files import LocalFiles
from headgate.cluster.deploy.local_process import LOG, LocalProcess
from headgate.cluster.deploy.naming import short_name
from headgate.cluster.deploy.objects import identity_and_service, is_address, wanted_addresses
from headgate.cluster.deploy.outcome import Deployed, DeployRefused
from headgate.cluster.deploy.parameters import merged_parameters
from headgate.cluster.deploy.pod import TOKEN_SECONDS
from headgate.cluster.deploy.reconciler import FAILED, GatewayReconciler
from headgate.cluster.deploy.settings import DeploySettings
from headgate.cluster.deploy.work_queue import delay_after
from headgate.cluster.snapshot import ObjectKey, Snapshot, generation, key_of
from headgate.cluster.translate.conditions import Unmet
from headgate.net.tasks import spawn

logger = logging.getLogger("deployer")

Json = dict[str, Any]
# A process that has lived this long, in seconds, has not failed at its start.
SETTLED_SECONDS: Final = 60.0
# One that has ended more than once counts as failing until it has lived this long, in seconds.
_DOUBT_SECONDS: Final = 5.0
# Seconds between two looks at the lengths of logs.
LOG_SECONDS: Final = 5.0
# Part of a token's life after which another one is asked for.
_RENEWED: Final = 0.7


@dataclass(slots=True)
class _Running:
    """A Gateway on this machine. `renewal`: when its token is renewed, by the monotonic clock. `deaths`: one after the
    other, each soon after the start. `last`: the last line that the latest of them wrote."""

    address: str
    process: LocalProcess | None = None
    started: float = 0.0
    renewal: float = 0.0
    deaths: int = 0
    starts_from: float = 0.0
    last: str = ""


class LocalDeployer(GatewayReconciler):
    """One `headgate` process for each Gateway, with an address of its own.

    `addresses`: a range such as 127.0.0.0/8. `folder`: where tokens, logs and states are kept. With one, processes
    outlive a controller that is killed, and are found again; without, they end with it in any case.
    """

    def __init__(
        self,
        calls: ApiCalls,
        settings: DeploySettings,
        changed: Callable[[], None],
        addresses: str,
        folder: Path | None = None,
    ) -> None:
        """Raises ClusterError if the range cannot be used, and OSError if there can be no folder."""
        super().__init__(calls, settings, changed)
        self._range = AddressRange(addresses)
        self._temporary = folder is None
        self._folder = Path(tempfile.mkdtemp(prefix="headgate-local-")) if folder is None else folder
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._running: dict[ObjectKey, _Running] = {}

    async def run(self) -> None:
        """Work until it is cancelled; then all processes end."""
        logs = spawn("logs of local gateways", self._bound_logs())
        try:
            await super().run()
        finally:
            logs.cancel()
            ends = [one.process.end() for one in self._running.values() if one.process is not None]
            await asyncio.gather(*ends)
            self._running.clear()
            if self._temporary:
                shutil.rmtree(self._folder, ignore_errors=True)

    async def _bound_logs(self) -> None:
        while True:
            await asyncio.sleep(LOG_SECONDS)
            for key in list(self._running):
                folder = LocalFiles.folder_of(self._folder, key)
                try:
                    await asyncio.to_thread(local_process.bound_log, folder)
                except OSError as error:
                    logger.warning("the log of a gateway is too long", extra={"gateway": str(key), "error": str(error)})

    async def reconcile(self, snapshot: Snapshot, gateway: Json) -> Deployed:
        key = key_of(gateway)
        parameters = merged_parameters(snapshot, gateway, self._settings)
        account, service = identity_and_service(snapshot, _without_addresses(gateway), self._settings, parameters)
        address = self._address(key, gateway)
        # Nobody balances here, and no port of the machine is needed.
        service["spec"]["type"] = "ClusterIP"
        await self._applier.apply(snapshot, gateway, (account, service))
        running = self._running.get(key)
        if running is None or running.address != address:
            await self._end(key)
            running = self._running[key] = _Running(address)
        files = LocalFiles(self._folder, key, address, self._settings, self._temporary)
        files.write(parameters, failing=running.process is None and running.deaths > 0)
        await self._renew(key, running, files)
        again = await self._start(key, running, files)
        refusal, trusted = None, running.started + _DOUBT_SECONDS
        if running.deaths > 1 and (running.process is None or time.monotonic() < trusted):
            why = f"the gateway keeps ending soon after its start, see {files.folder / LOG}: {running.last}"
            refusal = Unmet(FAILED, why)
            again = min(again, trusted) if running.process is not None else again
        self._queue.add_later(key, again - time.monotonic())
        where = {"type": "IPAddress", "value": address}
        return Deployed((where,), refusal, "Programmed", generation(gateway))

    async def gone(self, key: ObjectKey) -> None:
        await self._end(key)
        shutil.rmtree(LocalFiles.folder_of(self._folder, key), ignore_errors=True)

    async def refused(self, key: ObjectKey, refusal: DeployRefused) -> None:
        """A process without the address that is wanted now must not go on at another one; all others do."""
        if refusal.reason == _UNUSABLE:
            await self._end(key)

    def _address(self, key: ObjectKey, gateway: Json) -> str:
        """Return where a Gateway listens. Raises DeployRefused."""
        taken = {one.address for other, one in self._running.items() if other != key}
        asked = wanted_addresses(gateway)
        for kind, value in asked:
            if kind not in ("IPAddress", "Hostname"):
                raise DeployRefused(f"addresses of type {kind} are not supported", "UnsupportedAddress")
            if kind == "Hostname" or not is_address(value) or value not in self._range or not can_listen(value):
                raise DeployRefused(f"{value} is no address of this machine's range", _UNUSABLE, "Programmed")
            if value in taken:
                raise DeployRefused(f"{value} is the address of another Gateway", _UNUSABLE, "Programmed")
        if len(asked) > 1:
            raise DeployRefused("a Gateway of this machine has one address", _UNUSABLE, "Programmed")
        if asked:
            return asked[0][1]
        known = self._running.get(key)
        return known.address if known is not None else self._range.choose(key, taken)

    async def _renew(self, key: ObjectKey, running: _Running, files: LocalFiles) -> None:
        """Write a token of the Gateway's ServiceAccount if there is none or it has lived for most of its time."""
        now = time.monotonic()
        if now < running.renewal:
            return
        path = f"{owned_kinds.SERVICE_ACCOUNT.path(key.namespace, short_name(key.name))}/token"
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": [self._settings.audience], "expirationSeconds": TOKEN_SECONDS},
        }
        answer = await self._calls.create(path, request)
        files.write_token(answer["status"]["token"])
        seconds = int(answer.get("spec", {}).get("expirationSeconds") or TOKEN_SECONDS)
        running.renewal = now + seconds * _RENEWED

    async def _start(self, key: ObjectKey, running: _Running, files: LocalFiles) -> float:
        """Have the process run that is wanted; one that keeps dying is started later each time. Return when there is
        something to do again, by the monotonic clock."""
        if running.process is None and running.started == 0.0:
            running.process = local_process.found_again(files.folder, lambda: self._died(key, running))
        if running.process is not None and running.process.digest != files.digest:
            await running.process.end()
            running.process = None
        now = time.monotonic()
        if running.process is not None:
            running.started = running.started or now
            return running.renewal
        if now < running.starts_from:
            return min(running.renewal, running.starts_from)
        running.started = now
        running.process = local_process.start(
            files.folder, files.configuration, files.environment, files.digest, lambda: self._died(key, running)
        )
        return running.renewal

    def _died(self, key: ObjectKey, running: _Running) -> None:
        now = time.monotonic()
        running.process = None
        running.deaths = running.deaths + 1 if now - running.started < SETTLED_SECONDS else 0
        running.starts_from = now + (delay_after(running.deaths) if running.deaths > 1 else 0.0)
        if running.deaths:
            running.last = local_process.last_line(LocalFiles.folder_of(self._folder, key))
            logger.warning("a gateway ended soon after its start", extra={"gateway": str(key), "last": running.last})
            self.warned(key, FAILED, f"the gateway ended soon after its start: {running.last}")
        if self._running.get(key) is running:
            self._queue.add(key)

    async def _end(self, key: ObjectKey) -> None:
        running = self._running.get(key)
        if running is None:
            return
        if running.process is not None:
            await running.process.end()
            running.process = None
        del self._running[key]


_UNUSABLE: Final = "AddressNotUsable"


def _without_addresses(gateway: Json) -> Json:
    """Return a Gateway whose Service asks for no address: here the process has it."""
    spec = {key: value for key, value in gateway["spec"].items() if key != "addresses"}
    return {**gateway, "spec": spec}
