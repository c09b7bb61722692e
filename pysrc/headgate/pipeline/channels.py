"""gRPC channels to the services of policies. A new configuration takes over the channels that it still names."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headgate.ir.endpoint import Endpoint
from headgate.ir.gateway import Gateway
from headgate.ir.remote_service import RemoteService
from headgate.net.authority import own_authority
from headgate.net.dial import Dialer
from headgate.net.dns import Resolver
from headgate.pipeline.pools import Pools
from headgate.pipeline.proxies import proxy_selector
from headgate_engine.link.worker import Worker

if TYPE_CHECKING:  # h2: 3 MB
    from headgate.net.grpc import GrpcChannel, GrpcClient


class Channels:
    """Channels of one worker by endpoint key."""

    def __init__(
        self, worker: Worker, gateway: Gateway, resolver: Resolver, pools: Pools, previous: Channels | None
    ) -> None:
        self._worker = worker
        self._pools = pools
        self._settings = gateway.process.upstream
        self._resolver = resolver
        self._previous = {} if previous is None else previous.by_key
        self.by_key: dict[str, GrpcChannel] = {}

    def client(self, service: RemoteService) -> GrpcClient:
        """Return a client for all endpoints of a service."""
        from headgate.net.grpc import GrpcClient

        return GrpcClient([(self._channel(place), share) for place, share in service.places])

    def _channel(self, endpoint: Endpoint) -> GrpcChannel:
        from headgate.net.grpc import GrpcChannel

        found = self.by_key.get(endpoint.key) or self._previous.get(endpoint.key)
        if found is None:
            mesh = self._pools.mesh_of(endpoint)
            dialer = Dialer(endpoint, self._settings, self._resolver, partial(proxy_selector, self._worker), mesh)
            found = GrpcChannel(own_authority(endpoint), dialer.connect, secure=endpoint.tls is not None)
        self.by_key[endpoint.key] = found
        return found

    def close_unused(self, current: Channels) -> None:
        """Close the channels that `current` has not taken over, each after its last call."""
        current._previous = {}
        for key, channel in self.by_key.items():
            if current.by_key.get(key) is not channel:
                channel.close()

    def close(self) -> None:
        """Close all."""
        for channel in self.by_key.values():
            channel.close()
