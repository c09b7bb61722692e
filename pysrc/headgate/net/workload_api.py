"""A client of the SPIFFE Workload API, which gives the gateway its X.509-SVID and tells of every new one.

The client is that of `net.grpc`: the maintained package `spiffe` brings grpcio, its threads and 15 MB, for one call
whose messages have nine fields.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Final

from headgate.crypto.svid import svid_of
from headgate.dialect.workload_api import FETCH_X509_SVID, SECURITY_HEADER, given_svid, request
from headgate.ir.process import WorkloadEndpoint
from headgate.ir.tls import Svid
from headgate.net.grpc import GrpcChannel

CONNECT_S: Final = 5.0


async def svids(endpoint: WorkloadEndpoint) -> AsyncGenerator[Svid, None]:
    """Yield the SVID, and every one that follows it. Ends when the agent ends the stream.

    Raises GrpcError (also without a connection), and ValueError for an answer that is no valid SVID.
    """
    loop = asyncio.get_running_loop()

    async def dial(factory: Callable[[], asyncio.BaseProtocol]) -> None:
        async with asyncio.timeout(CONNECT_S):
            if endpoint.unix_path is not None:
                await loop.create_unix_connection(factory, endpoint.unix_path)
            else:
                await loop.create_connection(factory, endpoint.host, endpoint.port)

    channel = GrpcChannel("localhost", dial, secure=False)
    try:
        stream = await channel.open(FETCH_X509_SVID, metadata=(SECURITY_HEADER,))
        try:
            await stream.send(request())
            await stream.finish()
            async for message in stream:
                # To check an RSA key takes a while.
                yield await asyncio.to_thread(svid_of, *given_svid(message))
        finally:
            stream.close()
    finally:
        channel.close()
