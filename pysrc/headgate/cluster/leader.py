"""Which replica writes: the holder of a Lease.

https://kubernetes.io/docs/concepts/architecture/leases/#leader-election. A holder renews it every two seconds. One that
has not been able to for ten stops to be the leader, and another takes it fifteen seconds after the last renewal that it
has seen, by its own clock: clocks of machines are not compared.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

from headgate.cluster.calls import ApiCalls, ApiError
from headgate.cluster.snapshot import Json

logger = logging.getLogger("gateway-controller")

LEASE_SECONDS: Final = 15
RENEW_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 2.0
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"


class LeaderElection:
    """`identity`: of this replica. `led`, `lost`: what happens when it becomes the leader, and when it is it no longer.

    `clock`: seconds; `chance`: 0 to 1.
    """

    def __init__(
        self,
        calls: ApiCalls,
        lease: tuple[str, str],
        identity: str,
        led: Callable[[], None],
        lost: Callable[[], Awaitable[None]],
    ) -> None:
        """`lease`: namespace and name."""
        self.leads = False
        self.clock: Callable[[], float] = time.monotonic
        self.sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
        self.chance: Callable[[], float] = random.random
        self._calls = calls
        self._folder = LEASES.format(lease[0])
        self._name = lease[1]
        self._identity = identity
        self._led = led
        self._lost = lost
        # The Lease as it was when it changed last, and when that was seen.
        self._seen: tuple[str, float] = ("", 0.0)
        self._renewed = 0.0

    async def run(self) -> None:
        """Try to hold the Lease until cancelled."""
        while True:
            if self.leads and self._patience() <= 0:
                await self._become(False)
            try:
                async with asyncio.timeout(self._patience()):
                    holds = await self._try()
            except (ApiError, TimeoutError) as error:
                logger.warning("lease %s: %s", self._name, str(error) or "no answer in time")
                holds = self.leads and self.clock() - self._renewed < RENEW_SECONDS
            await self._become(holds)
            await self.sleep(RETRY_SECONDS * (1 if self.leads else 1 + self.chance() / 5))

    def _patience(self) -> float:
        """Return the seconds that a try may take. A leader has what is left since its last renewal: the time of an
        answer that does not come counts too, or another would lead beside it."""
        return self._renewed + RENEW_SECONDS - self.clock() if self.leads else RENEW_SECONDS

    async def release(self) -> None:
        """Stop to be the leader, and let another take the Lease at once."""
        if not self.leads:
            return
        await self._become(False)
        with contextlib.suppress(ApiError, TimeoutError):
            async with asyncio.timeout(RETRY_SECONDS):
                found = await self._calls.get(f"{self._folder}/{self._name}")
                if (found.get("spec") or {}).get("holderIdentity") == self._identity:
                    await self._write(found, {"holderIdentity": "", "leaseDurationSeconds": 1})

    async def _become(self, leads: bool) -> None:
        if leads == self.leads:
            return
        self.leads = leads
        logger.info("this replica %s", "leads" if leads else "leads no longer")
        if leads:
            self._led()
        else:
            await self._lost()

    async def _try(self) -> bool:
        """Take or renew the Lease; return whether it is held. Raises ApiError."""
        begun = self.clock()
        try:
            found = await self._calls.get(f"{self._folder}/{self._name}")
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise
            document = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": self._name},
                "spec": self._spec(None),
            }
            return await self._done(self._calls.create(self._folder, document), begun)
        spec = found.get("spec") or {}
        version = found["metadata"]["resourceVersion"]
        if version != self._seen[0]:
            self._seen = (version, begun)
        holder = spec.get("holderIdentity") or ""
        ends = self._seen[1] + (spec.get("leaseDurationSeconds") or LEASE_SECONDS)
        if holder not in ("", self._identity) and begun < ends:
            return False
        return await self._done(self._write(found, self._spec(spec)), begun)

    async def _done(self, writing: Awaitable[Json], begun: float) -> bool:
        try:
            await writing
        except ApiError as error:
            if error.status == _CONFLICT and not self.leads:
                return False  # another was quicker
            raise
        self._renewed = begun
        return True

    async def _write(self, found: Json, spec: Json) -> Json:
        version = {"resourceVersion": found["metadata"]["resourceVersion"]}
        return await self._calls.merge(f"{self._folder}/{self._name}", {"metadata": version, "spec": spec})

    def _spec(self, before: Json | None) -> Json:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec: dict[str, Any] = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": now,
        }
        if before is None or before.get("holderIdentity") != self._identity:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = ((before or {}).get("leaseTransitions") or 0) + (before is not None)
        return spec
