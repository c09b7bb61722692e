"""One request and its response, as one external processor sees and changes them.

Both directions use one stream of messages. Each is a row of parts (head, body, trailers), of which those that the
options name are sent; the processor answers them in this order. A body that is streamed (`fullDuplexStreamed`) goes out
as it comes, and what comes back takes its place.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from headgate.policy.processing.answers import take_answer
from headgate.policy.processing.direction import Direction
from headgate.policy.processing.messages import (
    PLAIN,
    REASON,
    reply_of,
)
from headgate.policy.processing.processor import ExternalProcessor
from headgate.policy.remote_stream import UNKNOWN
from headgate_engine.context.headers import MessageHead
from headgate_engine.context.request import Reply, RequestContext, log_extra
from headgate_engine.envoy.processing import body_part, read_answer, request_head, response_head, trailer_part
from headgate_engine.link.answer_deadline import AnswerDeadline
from headgate_engine.link.grpc_call import GrpcFailure
from headgate_engine.link.processed import (
    FEEDS,
    GATHERS,
    KEPT,
    PASSES,
    UNKNOWN_LENGTH,
    ProcessedStream,
)
from headgate_engine.plan.step import CONTINUE_VERDICT, RESPOND_VERDICT, SUSPEND_VERDICT

logger = logging.getLogger("headgate.processing")

STREAMED: Final = "fullDuplexStreamed"
TOO_LARGE: Final = 413
FAILED: Final = 500


class ProcessingSession:
    """Sends the parts of one request to its processor, and does what that answers."""

    def __init__(self, processor: ExternalProcessor, ctx: RequestContext) -> None:
        self.processor = processor
        self.ctx: RequestContext | None = ctx
        self.request = Direction(processor.options.request, response=False)
        self.response = Direction(processor.options.response, response=True)
        self.stream = ProcessedStream(ctx, self)
        self._call = processor.call(ctx, self)
        self._opened = self._over = self._told = False
        self._verdict: int | None = None
        self._deadline = AnswerDeadline(ctx, processor.timeout_s, self._late)
        self.idle = self.metadata_bytes = 0
        # What was sent of the request body, until there is a connection.
        self._unsent: list[bytes] = []
        self._reached = False

    # -- the request ---------------------------------------------------------------------------------------------------
    def begin(self) -> int:
        """Start with the request. Return the verdict of the step."""
        side = self.request
        side.content = self.stream.request_content
        side.ended = not side.content
        if side.parts.headers:
            assert self.ctx is not None
            side.awaits_head = True
            self._send(request_head(self.ctx.request, self.ctx.secure, side.ended, self._more(side)))
        if side.content and side.parts.body != "none" and not self._over:
            self.read_body(side)
        elif side.content and (side.parts.trailers or (side.awaits_head and self.processor.options.override)):
            self.stream.set_mode(False, PASSES, 0, True)
        if not side.awaits_head and not self._over:
            self.head_done(side)
        self._told = True
        self._rearm()
        if self._verdict is not None:
            return self._verdict
        self.stream.suspend()
        return SUSPEND_VERDICT

    def go_on(self) -> None:
        """The request continues."""
        if self._told:
            self.stream.go_on()
        elif self._verdict is None:
            self._verdict = CONTINUE_VERDICT

    def read_body(self, side: Direction) -> None:
        """Have the body come here."""
        if side.parts.body == STREAMED:
            side.streams = True
            self.stream.set_mode(side.response, FEEDS)
        elif side.parts.body != "none":
            self.stream.set_mode(side.response, GATHERS, self.processor.most_body)

    def head_done(self, side: Direction) -> None:
        """The head is as the processor wants it."""
        if side.response:
            self._response_head_done(side)
        elif not side.content or side.parts.body == "none":
            if side.trailers is not None:
                self._take_trailers(side)
            self.go_on()
        elif side.streams:
            self.stream.set_request_length(UNKNOWN_LENGTH)
            if not self.stream.whole:
                self.go_on()
        else:
            self._send_gathered(side)

    def _response_head_done(self, side: Direction) -> None:
        if not side.content:
            self.stream.begin_response(KEPT)
            self.stream.set_mode(True, PASSES)
        elif side.parts.body == "none":
            self.stream.begin_response(KEPT)
            self.stream.set_mode(True, PASSES, 0, side.parts.trailers)
        elif side.streams:
            self.stream.begin_response(UNKNOWN_LENGTH)
        else:
            self._send_gathered(side)
        self.close_if_done()

    # -- ProcessingSession of the engine -------------------------------------------------------------------------------
    def head(self, head: MessageHead, content: bool) -> None:
        """The response has come."""
        side = self.response
        side.content, side.ended, side.head = content, not content, head
        if self._over:
            self.stream.begin_response(KEPT)
            self.stream.set_mode(True, PASSES)
            return
        if side.parts.headers:
            side.awaits_head = True
            self._send(response_head(head, not content, self._more(side)))
        if content and not self._over:
            self.read_body(side)
        if not side.parts.headers and not self._over:
            self.head_done(side)
        self._rearm()

    def data(self, response: bool, data: bytes) -> None:
        """A piece of a body that is streamed."""
        if not self._over:
            side = self.response if response else self.request
            side.fed = True
            if not response and not self._reached:
                self._unsent.append(data)
            self._send(body_part(data, response, False, self._more(side)))
            if side.awaits_head or self._call.grpc.congested:
                self._rearm()

    def full(self, response: bool) -> None:
        """A body is longer than what may be gathered of it."""
        side = self.response if response else self.request
        if side.parts.body == "buffered":
            who, status = ("response", FAILED) if response else ("request", TOO_LARGE)
            self.fail(f"the {who} body has more than {self.processor.most_body} bytes", status)
            return
        side.cut = True
        if not side.awaits_head:
            self._send_gathered(side)

    def end(self, response: bool, trailers: MessageHead | None) -> None:
        """A body has ended, or what passes has trailers."""
        side = self.response if response else self.request
        side.ended, side.trailers = True, trailers
        if self._over:
            self.stream.end(response, trailers)
        elif side.streams:
            if trailers is not None:
                self.send_trailers(side)
            else:
                self._send(body_part(b"", response, True, self._more(side)))
        elif side.awaits_head:
            return
        elif side.parts.body == "none":
            self._take_trailers(side)
        else:
            self._send_gathered(side)
        self._rearm()

    def own_answer(self) -> None:
        """The gateway answers by itself: the processor sees nothing of that."""
        self._leave()

    def closed(self) -> None:
        """The request is over."""
        self._leave()
        self.ctx = None

    def unblocked(self) -> None:
        """The client takes more."""
        self._rearm()

    # -- sending -------------------------------------------------------------------------------------------------------
    def _more(self, side: Direction) -> bytes:
        """Return further fields of the next message: those of the first one of the stream and of a direction."""
        if side.begun or self.ctx is None:
            return b""
        side.begun = True
        found = self.processor.describe(self.ctx, response=side.response)
        return found if self._opened else self.processor.introduction + found

    def _send(self, message: bytes) -> None:
        self._call.grpc.send(message)
        if not self._opened:
            # What has been sent goes with the call.
            self._opened = True
            self.stream.set_stream(self._call.grpc)
            self._call.open()

    def _send_gathered(self, side: Direction) -> None:
        """Send a body that was gathered, or the beginning of one that is too long."""
        if side.fed or (not side.cut and not side.ended):
            return
        side.fed = side.awaits_body = True
        side.body = self.stream.gathered(side.response, self.processor.most_body if side.cut else -1)
        last = not side.cut and side.trailers is None
        self._send(body_part(side.body, side.response, last, self._more(side)))
        self._rearm()

    def _take_trailers(self, side: Direction) -> None:
        """Send the trailers of a body that passes, or send them on: they waited for the choice of the processor."""
        if side.parts.trailers:
            self.send_trailers(side)
        else:
            self.stream.end(side.response, side.trailers)

    def send_trailers(self, side: Direction) -> None:
        """Send the trailers, which go on once they are answered."""
        assert side.trailers is not None
        side.awaits_trailers = True
        self._send(trailer_part(side.trailers, side.response, self._more(side)))

    # -- StreamUser ----------------------------------------------------------------------------------------------------
    def message(self, data: bytes) -> None:
        """The processor has sent a message."""
        self._note_reached()
        if self._over or self.ctx is None:
            return
        self.stream.delivering = True
        try:
            answer = read_answer(data)
        except ValueError as error:
            self.fail(f"the message is not a ProcessingResponse: {error}"[:200])
            self.stream.push()
            return
        try:
            take_answer(self, answer, data)
        except Exception as error:  # task boundary: this request fails
            logger.exception("a processor's message failed", extra=log_extra(self.ctx))
            self.fail(f"internal error: {type(error).__name__}")
        if self._over:
            self.stream.push()
        self._rearm()

    def flushed(self) -> None:
        """What the processor has said for now is all."""
        self.stream.push()

    def _note_reached(self) -> None:
        if not self._reached:
            self._reached = True
            self._unsent.clear()

    def writable(self) -> None:
        """The processor takes more."""
        self._note_reached()
        if self.ctx is not None:
            self.stream.processor_writable()
            self._rearm()

    def failed(self, failure: GrpcFailure) -> None:
        """The call has failed."""
        if self.response.head is not None and not self._pending():
            self._leave()
            self._pass_all()
        elif failure.unsent and self.processor.fail_open and self._unsent and self.response.head is None:
            # Nothing of the body has left.
            self._note_failure(str(failure))
            self._leave()
            self.stream.send(False, b"".join(self._unsent))
            self.request.fed = False
            self._pass_all()
        else:
            self.fail(str(failure))
        # No `flushed` follows.
        self.stream.push()

    def ended(self) -> None:
        """The processor needs no more: pass on unchanged what it has not answered, unless a part is missing."""
        if self.request.incomplete or self.response.incomplete:
            self.fail("the processor has ended the stream")
        else:
            self._leave()
            self._pass_all()
        # No `flushed` follows.
        self.stream.push()

    # -- the end -------------------------------------------------------------------------------------------------------
    def answer_now(self, answer: Any) -> None:
        """Answer as the processor wants it: an ImmediateResponse."""
        assert self.ctx is not None
        kind = self.ctx.request.get("content-type") or ""
        if answer.details:
            self.ctx.add_log_field("extproc.details", answer.details[:512])
        self._conclude(reply_of(answer, grpc=kind.lower().startswith("application/grpc")), None)

    def refuse(self, reply: Reply, detail: str) -> None:
        """Answer with `reply`. `detail`: for the log."""
        self._conclude(reply, detail)

    def fail(self, detail: str, status: int = FAILED) -> None:
        """The processor has failed: the request continues without it if that is configured and possible."""
        if self._over or self.ctx is None:
            return
        self._note_failure(detail)
        self._call.end_span(UNKNOWN, detail)
        if self.processor.fail_open and status == FAILED and self.response.head is None and not self.request.fed:
            self._leave()
            self._pass_all()
            return
        text = f"ext_proc failed: {detail}"
        self._conclude(Reply(status, text.encode(), (PLAIN,), REASON), text)

    def _note_failure(self, detail: str) -> None:
        if self.ctx is not None:
            self.ctx.add_log_field("extproc.error", detail)
        logger.debug("processor failed", extra=log_extra(self.ctx, service=self.processor.name, error=detail))

    def _conclude(self, reply: Reply, detail: str | None) -> None:
        self._leave()
        if self._told or self.response.head is not None:
            self.stream.fail(reply, detail)
        elif self.ctx is not None:
            self.ctx.respond(reply)
            self._verdict = RESPOND_VERDICT

    def _pass_all(self) -> None:
        """Pass on unchanged what has not been sent."""
        if self.ctx is None:
            return
        if not self.request.done:
            self.request.done = True
            if self.request.content and not self.request.fed:
                self.stream.set_mode(False, PASSES)
            self.go_on()
        if self.response.head is not None and not self.response.done:
            self.response.done = True
            self.stream.begin_response(KEPT)
            self.stream.set_mode(True, PASSES)
        self.stream.push()

    def _leave(self) -> None:
        """End the call to the processor."""
        if self._over:
            return
        self._over = True
        self.stream.set_stream(None)
        self._call.close()
        self._deadline.close()

    @property
    def over(self) -> bool:
        """The processor has no more to do with the request."""
        return self._over

    def _pending(self) -> bool:
        one, other = self.request, self.response
        return one.waits or one.incomplete or other.waits or other.incomplete

    def close_if_done(self) -> None:
        """End the call once the processor has nothing more to see."""
        side = self.response
        if side.head is None or self._over or self._pending():
            return
        passes = not side.content or (side.parts.body == "none" and not side.parts.trailers)
        if side.done or passes:
            self._call.grpc.finish()
            self._leave()

    # -- time-outs -----------------------------------------------------------------------------------------------------
    def _rearm(self) -> None:
        """Restart the timeout for the processor's answer, if one is due."""
        if not self._over:
            self._deadline.set(self._expects())

    def _expects(self) -> bool:
        stream, one, other = self.stream, self.request, self.response
        if stream.blocked:
            return False         # it is the client that is waited for
        if one.awaits_head or other.awaits_head or (self._opened and self._call.grpc.congested):
            return True
        return one.waits or other.waits

    def _late(self) -> None:
        self.fail(f"no answer in {self.processor.timeout_s:g} s")
