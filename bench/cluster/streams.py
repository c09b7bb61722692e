"""What it costs to serve many data planes: `python bench/cluster/streams.py [resources] [streams]`.

One Gateway of 10,000 routes, 100 streams that take its first state, then one change for all of them. The clients are
another process (grpcio, which reads and forgets). Printed: seconds until the last stream has it, and CPU time of the
controller's process. `--library h2` sends the same bytes with a server on the h2 library, the alternative.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import resource
import time
from typing import Any

import grpc
import grpc.aio
from envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryRequest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived, WindowUpdated

from headgate.cluster.deliver.service import DeliveryService
from headgate.cluster.deliver.settings import DeliverySettings
from headgate.cluster.deliver.states import GatewayStates, difference
from headgate.cluster.deliver.wire import DELTA_METHOD, SERVICE, TYPE_URL, SentFragment, resource_of
from headgate.cluster.snapshot import ObjectKey
from headgate.cluster.translate.fragments import Fragment

KEY = ObjectKey("shop", "web")
PLAIN = DeliverySettings(host="127.0.0.1", port=0, mode="plaintext", authenticate=False, plain_secrets=True)


def route(number: int, body: str = "x") -> Fragment:
    value = {
        "name": f"r{number}", "namespace": "shop", "hostnames": [f"h{number}.test"],
        "matches": [{"path": {"pathPrefix": f"/r{number}"}}], "policies": {"timeout": {"requestTimeout": "10s"}},
        "backends": [{"service": {"name": f"shop/{body}", "port": 80}, "weight": 1}],
    }  # fmt: skip
    return Fragment(key=f"route/shop/r{number}.00.http", place="routes", value=value, parent="listener/shop/web.http")


def clients(port: int, streams: int, told: Any) -> None:
    """Take states on all streams; tell the number of bytes whenever all have taken one."""

    async def take(channel: Any, done: asyncio.Queue[int]) -> None:
        call = channel.stream_stream(f"/{SERVICE}/{DELTA_METHOD}")()
        first = DeltaDiscoveryRequest(type_url=TYPE_URL)
        first.node.id = "bench"
        first.node.metadata.update({"role": "shop~web"})
        await call.write(first.SerializeToString())
        for number in range(1, 3):
            size = len(await call.read())
            await call.write(DeltaDiscoveryRequest(type_url=TYPE_URL, response_nonce=str(number)).SerializeToString())
            done.put_nowait(size)
        await asyncio.sleep(3600)

    async def run() -> None:
        done: asyncio.Queue[int] = asyncio.Queue()
        options = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
        channels = [grpc.aio.insecure_channel(f"127.0.0.1:{port}", options) for _ in range(streams)]
        tasks = [asyncio.get_running_loop().create_task(take(one, done)) for one in channels]
        for _ in range(2):
            told.put(sum([await done.get() for _ in range(streams)]))
        await asyncio.gather(*tasks)

    asyncio.run(run())


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def serve(resources: int, streams: int, library: str) -> None:
    states = GatewayStates(lambda: None)
    service = DeliveryService(states, None, PLAIN)  # type: ignore[arg-type]
    fragments = [route(number) for number in range(resources)]
    began = time.perf_counter()
    states.update({KEY: tuple(fragments)}, {KEY: 1})
    print(f"update of {resources} new fragments: {(time.perf_counter() - began) * 1000:.1f} ms")
    held = {one.key: resource_of(one) for one in fragments}
    port = (await _h2_server(held)).sockets[0].getsockname()[1] if library == "h2" else 0
    if not port:
        await service.start()
        service.lead(True)
        port = service.port
    told: Any = multiprocessing.get_context("spawn").Queue()
    process = multiprocessing.get_context("spawn").Process(target=clients, args=(port, streams, told))
    began, used = time.perf_counter(), cpu()
    process.start()
    size = await asyncio.to_thread(told.get)
    print(f"first state: {size / 1e6:.0f} MB in {time.perf_counter() - began:.2f} s, CPU {cpu() - used:.2f} s")
    if library != "h2":
        fragments[7] = route(7, "changed")
        await asyncio.sleep(0.5)
        began, used = time.perf_counter(), cpu()
        states.update({KEY: tuple(fragments)}, {KEY: 2})
        middle = time.perf_counter() - began
        await asyncio.to_thread(told.get)
        taken = time.perf_counter() - began
        print(f"one change: update {middle * 1000:.1f} ms, all have it after {taken * 1000:.1f} ms, CPU {cpu() - used:.3f} s")
    print(f"memory of the controller: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB at most")
    process.terminate()
    process.join()
    if library != "h2":
        await service.stop()


class _H2Sender(asyncio.Protocol):
    """Answers each call with the same message, as a server on the h2 library would."""

    def __init__(self, message: bytes) -> None:
        self._left = memoryview(b"\0" + len(message).to_bytes(4) + message)
        self._connection = H2Connection(H2Configuration(client_side=False))
        self._number = 0
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._connection.initiate_connection()
        transport.write(self._connection.data_to_send())

    def data_received(self, data: bytes) -> None:
        for event in self._connection.receive_data(data):
            if isinstance(event, RequestReceived):
                self._number = event.stream_id
                head = [(":status", "200"), ("content-type", "application/grpc")]
                self._connection.send_headers(self._number, head)
            if isinstance(event, RequestReceived | WindowUpdated) and self._number:
                self._send()
        self._transport.write(self._connection.data_to_send())

    def _send(self) -> None:
        while self._left:
            window = self._connection.local_flow_control_window(self._number)
            room = min(window, self._connection.max_outbound_frame_size)
            if room <= 0:
                return
            self._connection.send_data(self._number, bytes(self._left[:room]))
            self._left = self._left[room:]


async def _h2_server(held: dict[str, SentFragment]) -> asyncio.Server:
    message = difference({}, held, 1)
    return await asyncio.get_running_loop().create_server(lambda: _H2Sender(message), "127.0.0.1", 0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("resources", type=int, nargs="?", default=10_000)
    parser.add_argument("streams", type=int, nargs="?", default=100)
    parser.add_argument("--library", choices=("grpcio", "h2"), default="grpcio")
    options = parser.parse_args()
    asyncio.run(serve(options.resources, options.streams, options.library))


if __name__ == "__main__":
    main()
