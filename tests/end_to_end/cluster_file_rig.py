"""What the translator writes for the Gateway edge/main, as a configuration that a test starts a gateway with."""

from __future__ import annotations

from manifests import Json

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.everything import World, everything
from headgate.cluster.translate.fragments import assembled
from headgate.document.write import write

# Stands for the port that a gateway is given.
PORT = 64_999


def configuration(documents: list[Json]) -> str:
    """Return the file for manifests whose listener has PORT, which the started gateway replaces."""
    return text_of(everything(Snapshot.of(documents), {}))


def text_of(world: World) -> str:
    return write(assembled(world.gateways[ObjectKey("edge", "main")])).replace(f"port: {PORT}", "port: {port}")
