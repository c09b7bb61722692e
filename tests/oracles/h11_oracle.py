"""h11 and our codec, each driven over cut input, with events brought to one form."""

from __future__ import annotations

import h11

from headgate_drivers import events
from headgate_drivers.http1 import CLIENT, SERVER, PythonCodec
from headgate_engine.errors import RemoteProtocolError

Normal = list[tuple[object, ...]]
REFUSED = ("refused",)


def cut(data: bytes, at: list[int]) -> list[bytes]:
    """The pieces of data cut at the given offsets."""
    edges = [0, *sorted({offset for offset in at if 0 < offset < len(data)}), len(data)]
    return [data[a:b] for a, b in zip(edges, edges[1:], strict=False)]


def add(found: Normal, item: tuple[object, ...]) -> None:
    """Append; adjacent pieces of a body become one."""
    if item[0] == "data" and found and found[-1][0] == "data":
        found[-1] = ("data", found[-1][1] + item[1])  # type: ignore[operator]
    else:
        found.append(item)


def ours(role: int, pieces: list[bytes], method: str = "GET") -> Normal:
    """What our codec says of the first message."""
    codec = PythonCodec(role)
    if role == CLIENT:
        codec.send(events.RequestHead(method, "/", "a.test"))
        codec.send(events.EndOfMessage())
    found: Normal = []
    try:
        for piece in [*pieces, b""]:
            codec.receive(piece)
            while True:
                event = codec.next_event()
                if isinstance(event, events.NeedData):
                    break
                if isinstance(event, events.Paused | events.ConnectionClosed | events.Upgraded):
                    return found
                if isinstance(event, events.RequestHead):
                    add(found, ("request", event.method, event.minor_version))
                elif isinstance(event, events.ResponseHead):
                    add(found, ("response", event.status, event.minor_version))
                elif isinstance(event, events.DataEvent):
                    add(found, ("data", event.data))
                elif isinstance(event, events.EndOfMessage):
                    add(found, ("end",))
    except RemoteProtocolError:
        found.append(REFUSED)
    return found


def theirs(role: int, pieces: list[bytes], method: str = "GET") -> Normal:
    """What h11 says of the first message."""
    connection = h11.Connection(h11.SERVER if role == SERVER else h11.CLIENT)
    if role == CLIENT:
        connection.send(h11.Request(method=method, target="/", headers=[("host", "a.test")]))
        connection.send(h11.EndOfMessage())
    found: Normal = []
    try:
        for piece in [*pieces, b""]:
            connection.receive_data(piece)
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    break
                if event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                    return found
                if isinstance(event, h11.Request):
                    add(found, ("request", event.method.decode(), int(event.http_version[-1:])))
                elif isinstance(event, h11.Response | h11.InformationalResponse):
                    add(found, ("response", event.status_code, int(event.http_version[-1:])))
                elif isinstance(event, h11.Data):
                    add(found, ("data", bytes(event.data)))
                elif isinstance(event, h11.EndOfMessage):
                    add(found, ("end",))
    except h11.RemoteProtocolError:
        found.append(REFUSED)
    return found
