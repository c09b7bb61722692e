"""Runs gateways as pods: applies the objects of each Gateway, and tells its addresses."""

from __future__ import annotations

from typing import Any

from headgate.cluster.deploy.addresses import addresses_of
from headgate.cluster.deploy.objects import rendered
from headgate.cluster.deploy.outcome import Deployed, DeployRefused
from headgate.cluster.deploy.parameters import merged_parameters
from headgate.cluster.deploy.reconciler import GatewayReconciler
from headgate.cluster.snapshot import ObjectKey, Snapshot, generation

Json = dict[str, Any]


class Deployer(GatewayReconciler):
    """Data planes of all own Gateways, as objects of the cluster, which the API server deletes with their Gateway."""

    async def reconcile(self, snapshot: Snapshot, gateway: Json) -> Deployed:
        parameters = merged_parameters(snapshot, gateway, self._settings)
        # Rendered once before anything is changed: what is refused leaves no half of a data plane.
        rendered(snapshot, gateway, self._settings, "", parameters)
        session_key = "" if parameters.own_session_key else await self._applier.session_key(gateway)
        documents = rendered(snapshot, gateway, self._settings, session_key, parameters)
        service = await self._applier.apply(snapshot, gateway, documents)
        await self._applier.prune(gateway, documents)
        return Deployed(addresses_of(gateway, service), generation=generation(gateway))

    async def gone(self, key: ObjectKey) -> None:
        """The objects have the Gateway as their owner; those of one that has changed its class stay."""

    async def refused(self, key: ObjectKey, refusal: DeployRefused) -> None:
        """What was deployed before goes on: a mistake in a resource ends no traffic."""
