"""Cloud credentials are made for the first policy that wants one, and last for as long as configurations have them."""

from __future__ import annotations

import asyncio

from headgate.ir.endpoint import Endpoint
from headgate.ir.policy.cloud_auth import AzureAuth, GcpAuth
from headgate.net.tasks import spawn
from headgate.pipeline.cloud import CloudCredentials
from headgate.policy.cloud.refresher import CredentialRefresher
from headgate_engine.link.client import HttpClient


class Spawner:
    """What is used of a worker."""

    spawn = staticmethod(spawn)


def client(place: Endpoint) -> HttpClient:
    raise ConnectionError(place)


def following(previous: CloudCredentials | None) -> CloudCredentials:
    return CloudCredentials(Spawner(), client, previous)  # type: ignore[arg-type]


def closed(refresher: CredentialRefresher) -> bool:
    return refresher._task is None or refresher._task.cancelling() > 0


def test_credentials_pass_to_the_next_configuration_that_has_them() -> None:
    async def main() -> None:
        first = following(None)
        kept, gone = first.store().refresher(GcpAuth()), first.store().refresher(AzureAuth())
        second = following(first)
        assert second.store().refresher(GcpAuth()) is kept
        first.close_unused(second)
        assert closed(gone)
        assert not closed(kept)
        # One that wants none closes all of them, and one behind it begins anew.
        third = following(second)
        second.close_unused(third)
        assert closed(kept)
        fourth = following(third)
        assert fourth.store().refresher(GcpAuth()) is not kept
        fourth.close()
        third.close()

    asyncio.run(main())


def test_a_configuration_that_was_refused_closes_its_own_alone() -> None:
    async def main() -> None:
        running = following(None)
        kept = running.store().refresher(GcpAuth())
        refused = following(running)
        own = refused.store().refresher(AzureAuth())
        assert refused.store().refresher(GcpAuth()) is kept
        refused.close_unused(running)
        assert closed(own)
        assert not closed(kept)
        running.close()
        # Where nothing of the kind is in force.
        none, refused = following(None), following(None)
        own = refused.store().refresher(AzureAuth())
        refused.close_unused(none)
        assert closed(own)

    asyncio.run(main())
