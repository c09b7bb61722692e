"""One HTTP/2 client connection with concurrent exchanges (RFC 9113), built on the `h2` library.

An exchange either holds whole messages (a request with its body, a bounded response with its body and trailers) or
is a stream.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Final

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import H2Error, NoAvailableStreamIDError
from h2.settings import SettingCodes, Settings

from headgate.net.http2_exchange import Headers, Http2Error, Http2Exchange, Http2Response, StreamExchange, TooLarge

logger = logging.getLogger("headgate.http2")

FRAME_HEAD: Final = 9
GOAWAY: Final = 7
MAX_FRAME: Final = 16_384
# Flow-control windows in bytes: what a server may send before it is read, per exchange and per connection.
WINDOW: Final = 1 << 20
CONNECTION_WINDOW: Final = 8 << 20
MAX_HEADER_BYTES: Final = 64 * 1024
# A PING is sent after QUIET_S seconds without data while exchanges are running; the server has ANSWER_S seconds to
# answer. MAX_PROBES bounds the number of PINGs, because servers close connections of clients that send too many
# (https://github.com/grpc/proposal/blob/master/A8-client-side-keepalive.md, `too_many_pings`).
QUIET_S, ANSWER_S, MAX_PROBES = 20.0, 10.0, 2


class Http2Connection(asyncio.Protocol):
    """A client connection. Await `ready` before the first exchange.

    `closed(connection)` is called when the connection cannot take any more exchanges.
    """

    def __init__(self, closed: Callable[[Http2Connection], None]) -> None:
        self._closed = closed
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = self._loop.create_future()
        self._h2 = H2Connection(
            H2Configuration(
                client_side=True,
                header_encoding=None,
                # Callers pass valid headers with names in lower case. Checking them takes a fifth of a call's time.
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self._h2.local_settings = Settings(
            client=True,
            initial_values={
                SettingCodes.ENABLE_PUSH: 0,
                SettingCodes.INITIAL_WINDOW_SIZE: WINDOW,
                SettingCodes.MAX_FRAME_SIZE: MAX_FRAME,
                SettingCodes.MAX_HEADER_LIST_SIZE: MAX_HEADER_BYTES,
            },
        )
        self._transport: asyncio.Transport | None = None
        self._exchanges: dict[int, Http2Exchange] = {}
        self._partial = b""
        self._over: Http2Error | None = None
        self._leaving = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._vacancy = asyncio.Event()
        self._last_data = self._loop.time()
        self._probes = 0
        self._watch: asyncio.TimerHandle | None = None

    # -- public methods ------------------------------------------------------------------------------------------------
    @property
    def usable(self) -> bool:
        """True if the connection takes new exchanges."""
        return self._over is None and not self._leaving

    async def exchange(self, headers: Headers, body: bytes, limit: int) -> Http2Response:
        """Send a request and return its response. Raises Http2Error, TooLarge if the body exceeds `limit` bytes.

        If the caller is cancelled, the stream is reset with CANCEL, so that the server stops.
        """
        exchange = Http2Exchange(limit)
        number = await self._begin(exchange, headers, end=not body)
        try:
            if body:
                await self.send(number, exchange, body, end=True)
            else:
                self._flush()
            await exchange.done
            return exchange.answer
        finally:
            self.finish(number, exchange)

    async def open(self, headers: Headers) -> Http2Stream:
        """Begin an exchange whose request and response bodies are streamed. Raises Http2Error."""
        exchange = StreamExchange()
        number = await self._begin(exchange, headers, end=False)
        self._flush()
        return Http2Stream(self, number, exchange)

    async def _begin(self, exchange: Http2Exchange, headers: Headers, *, end: bool) -> int:
        while self.usable and len(self._exchanges) >= self._h2.remote_settings.max_concurrent_streams:
            self._vacancy.clear()
            await self._vacancy.wait()
        if not self.usable:
            raise Http2Error(str(self._over or "the server is closing the connection"), unsent=True)
        try:
            number = self._h2.get_next_available_stream_id()
            self._h2.send_headers(number, headers, end_stream=end)
        except NoAvailableStreamIDError:
            self._leave()
            raise Http2Error("the connection has no stream ids left", unsent=True) from None
        except H2Error as error:
            raise Http2Error(f"the request cannot be sent: {error}") from error
        exchange.sent = end
        self._exchanges[number] = exchange
        self._watch_over()
        return number

    def close(self) -> None:
        """Take no more exchanges, and close the connection when the last one has ended."""
        self._leave()

    def probe(self) -> None:
        """Send a PING. If no data arrives within ANSWER_S seconds, the connection is aborted."""
        if self._over is None and self._probes < MAX_PROBES:
            self._probes += 1
            with contextlib.suppress(H2Error):
                self._h2.ping(self._probes.to_bytes(8))
            self._flush()
            self._loop.call_later(ANSWER_S, self._expect, self._last_data)

    # -- sending -------------------------------------------------------------------------------------------------------
    async def send(self, number: int, exchange: Http2Exchange, body: bytes, *, end: bool) -> None:
        """Send a part of a request body as flow control allows. Raises Http2Error.

        This also returns, with the rest unsent, when the exchange has ended.
        """
        at = 0
        while (at < len(body) or (end and not exchange.sent)) and not exchange.done.done():
            try:
                room = min(self._h2.local_flow_control_window(number), self._h2.max_outbound_frame_size)
                if room <= 0 and at < len(body):
                    exchange.room.clear()
                    self._flush()
                    await exchange.room.wait()
                    continue
                piece = body[at : at + room]
                at += len(piece)
                exchange.sent = end and at >= len(body)
                self._h2.send_data(number, piece, end_stream=exchange.sent)
            except H2Error as error:
                if exchange.done.done():
                    return
                raise Http2Error(f"the request cannot be sent: {error}") from error
            if not self._writable.is_set():
                self._flush()
                await self._writable.wait()
        self._flush()

    def taken(self, number: int, length: int) -> None:
        """Return flow-control credit for `length` bytes of the response that were read."""
        if self._over is None:
            with contextlib.suppress(H2Error, ValueError):
                self._h2.acknowledge_received_data(length, number)
            self._flush()

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if data and self._transport is not None:
            self._transport.write(data)

    def finish(self, number: int, exchange: Http2Exchange) -> None:
        """Remove an exchange. Its stream is reset unless it has ended in both directions."""
        whole = exchange.sent and exchange.done.done() and not exchange.done.cancelled()
        if self._exchanges.pop(number, None) is not None and self._over is None and not whole:
            with contextlib.suppress(H2Error):
                self._h2.reset_stream(number, ErrorCodes.CANCEL)
            self._flush()
        self._vacancy.set()
        if self._leaving and not self._exchanges:
            self._end(Http2Error("the connection is closed", unsent=True))

    def _leave(self) -> None:
        self._leaving = True
        self._vacancy.set()
        if not self._exchanges:
            self._end(Http2Error("the connection is closed", unsent=True))

    # -- asyncio.Protocol ----------------------------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the connection preface (RFC 9113 section 3.4)."""
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self._transport = transport  # type: ignore[assignment]
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() != "h2":
            self._end(Http2Error("the server does not offer HTTP/2 (ALPN h2)", unsent=True))
            return
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(CONNECTION_WINDOW - 65_535)
        self._flush()

    def pause_writing(self) -> None:
        """Suspend senders: the transport's write buffer is full."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let suspended senders continue."""
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Process received frames."""
        if self._over is not None:
            return
        self._last_data = self._loop.time()
        try:
            for event in self._h2.receive_data(b"".join(self._split(data))):
                self._take(event)
        except (H2Error, ValueError) as error:
            self._flush()
            self._end(Http2Error(f"the server broke the protocol: {error}"))
            return
        self._flush()
        if self._leaving and not self._exchanges:
            self._end(Http2Error("the connection is closed", unsent=True))

    def connection_lost(self, error: Exception | None) -> None:
        """Fail all running exchanges."""
        self._end(Http2Error(f"the connection broke: {error or 'closed by the server'}"))

    def _split(self, data: bytes) -> Iterator[bytes]:
        """Yield complete frames except GOAWAY, which is handled here.

        After a GOAWAY `h2` refuses all further frames, but running exchanges may still complete (RFC 9113 section 6.8).
        """
        data, at = self._partial + data, 0
        while len(data) - at >= FRAME_HEAD:
            length = int.from_bytes(data[at : at + 3])
            stop = at + FRAME_HEAD + length
            if length > MAX_FRAME:
                self._partial = b""
                raise ValueError("this is not HTTP/2" if not self.ready.done() else "a frame is too large")
            if stop > len(data):
                break
            if data[at + 3] == GOAWAY:
                self._go_away(data[at + FRAME_HEAD : stop])
            else:
                yield data[at:stop]
            at = stop
        self._partial = data[at:]

    def _go_away(self, payload: bytes) -> None:
        if len(payload) < 8:
            raise ValueError("a GOAWAY is cut short")
        last, code = int.from_bytes(payload[:4]) & 0x7FFF_FFFF, int.from_bytes(payload[4:8])
        if code:
            reason = payload[8:80].decode("latin-1")
            logger.info("the server closes the connection", extra={"code": code, "reason": reason})
        self._leaving = True
        self._vacancy.set()
        for number, exchange in self._exchanges.items():
            if number > last:
                exchange.fail(Http2Error("the server is closing the connection", unsent=True))
        # New exchanges need another connection. This one stays open for its running exchanges.
        self._closed(self)

    def _take(self, event: events.Event) -> None:
        match event:
            case events.RemoteSettingsChanged():
                if not self.ready.done():
                    self.ready.set_result(None)
                self._vacancy.set()
                self._windows_opened(0)
            case events.ResponseReceived(stream_id=number, headers=headers):
                self._probes = 0
                if exchange := self._exchanges.get(number or 0):
                    exchange.head([(bytes(name), bytes(value)) for name, value in headers or ()])
            case events.DataReceived(stream_id=number, data=data, flow_controlled_length=length):
                self._probes = 0
                exchange = self._exchanges.get(number or 0)
                kept = 0 if exchange is None or exchange.eager else len(data or b"")
                if length and length > kept:
                    self._h2.acknowledge_received_data(length - kept, number or 0)
                if exchange is not None:
                    self._more(number or 0, exchange, data or b"")
            case events.TrailersReceived(stream_id=number, headers=headers):
                if exchange := self._exchanges.get(number or 0):
                    exchange.answer.trailers = [(bytes(name), bytes(value)) for name, value in headers or ()]
            case events.StreamEnded(stream_id=number):
                if exchange := self._exchanges.get(number or 0):
                    exchange.end()
            case events.StreamReset(stream_id=number, error_code=code):
                if exchange := self._exchanges.get(number or 0):
                    unsent = code == ErrorCodes.REFUSED_STREAM
                    found = int(code) if code is not None else None
                    exchange.fail(Http2Error(f"the server reset the stream ({found})", unsent=unsent, code=found))
            case events.WindowUpdated(stream_id=number):
                self._windows_opened(number or 0)

    def _more(self, number: int, exchange: Http2Exchange, data: bytes) -> None:
        if not exchange.data(data) and not exchange.done.done():
            with contextlib.suppress(H2Error):
                self._h2.reset_stream(number, ErrorCodes.CANCEL)
            exchange.fail(TooLarge(f"the answer has more than {exchange.limit} bytes"))

    def _windows_opened(self, number: int) -> None:
        for exchange in self._exchanges.values() if number == 0 else filter(None, [self._exchanges.get(number)]):
            exchange.room.set()

    def _end(self, error: Http2Error) -> None:
        if self._over is not None:
            return
        self._over = error
        if self._watch is not None:
            self._watch.cancel()
        if not self.ready.done():
            self.ready.set_exception(Http2Error(str(error), unsent=True))
            self.ready.exception()
        for exchange in list(self._exchanges.values()):
            exchange.fail(error)
        self._vacancy.set()
        self._writable.set()
        if self._transport is not None:
            self._transport.close()
        self._closed(self)

    # -- liveness ------------------------------------------------------------------------------------------------------
    def _watch_over(self) -> None:
        if self._watch is None:
            # Silence counts from the start of the exchange: an idle connection is expected to be silent.
            self._last_data = self._loop.time()
            self._watch = self._loop.call_later(QUIET_S, self._look)

    def _look(self) -> None:
        self._watch = None
        if not self._exchanges or self._over is not None:
            return
        quiet = self._loop.time() - self._last_data
        if quiet >= QUIET_S * (1 + self._probes):
            self.probe()
        self._watch = self._loop.call_later(max(1.0, QUIET_S - quiet), self._look)

    def _expect(self, probed: float) -> None:
        """Abort the connection if no data has arrived since the probe at `probed`."""
        if self._over is None and self._last_data <= probed:
            self._end(Http2Error("the server does not answer"))
            if self._transport is not None:
                self._transport.abort()


class Http2Stream:
    """A running exchange with streamed request and response bodies. The caller of `open()` must call `close()`."""

    def __init__(self, connection: Http2Connection, number: int, exchange: StreamExchange) -> None:
        self._connection = connection
        self._number = number
        self._exchange = exchange

    @property
    def answer(self) -> Http2Response:
        """The headers and trailers received so far; the body is empty, see `read()`."""
        return self._exchange.answer

    async def send(self, data: bytes, *, end: bool = False) -> None:
        """Send a part of the body. Waits while the flow-control window is full. Raises Http2Error.

        Nothing is sent after the end of the response.
        """
        if self._exchange.done.done():
            self._exchange.done.result()
            return
        await self._connection.send(self._number, self._exchange, data, end=end)

    async def head(self) -> Headers:
        """Wait for the response headers and return them. Raises Http2Error."""
        exchange = self._exchange
        while not exchange.begun:
            if exchange.done.done():
                exchange.done.result()
                break
            exchange.more.clear()
            await exchange.more.wait()
        return exchange.answer.headers

    async def read(self) -> bytes:
        """Return the next part of the response body, b"" at its end. Raises Http2Error."""
        exchange = self._exchange
        while not exchange.chunks:
            if exchange.done.done():
                exchange.done.result()
                return b""
            exchange.more.clear()
            await exchange.more.wait()
        data = exchange.chunks.popleft()
        self._connection.taken(self._number, len(data))
        return data

    def close(self) -> None:
        """End the exchange. Its stream is reset unless it has ended in both directions."""
        left = sum(len(chunk) for chunk in self._exchange.chunks)
        self._exchange.chunks.clear()
        self._connection.finish(self._number, self._exchange)
        if left:
            self._connection.taken(self._number, left)
