"""What an external processor answers, and what that does to a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from headgate.policy.processing.direction import Direction
from headgate.policy.processing.messages import (
    BODY_MODES,
    CONTINUE_AND_REPLACE,
    MODES_OF_NUMBERS,
    SEND,
    SKIP,
    DecodeError,
    ProcessingResponse,
)
from headgate_engine.envoy.processing import BODIES, HEADS, NOTHING, OF_RESPONSES, ProcessorAnswer
from headgate_engine.link.processed import KEPT, PASSES, UNKNOWN_LENGTH

if TYPE_CHECKING:
    from headgate.policy.processing.session import ProcessingSession

VARIABLE: Final = "extproc"
# What becomes of a body (ProcessorAnswer.mutation).
ANOTHER_BODY: Final = 1
STREAMED_BODY: Final = 3
# Answers one after the other that bring the request no further.
MOST_IDLE: Final = 1000
MOST_METADATA: Final = 64 * 1024


def take_answer(session: ProcessingSession, answer: ProcessorAnswer, message: bytes) -> None:
    """Do what a ProcessingResponse says. `message`: the whole of it."""
    mode = None
    if answer.more:
        try:
            told = ProcessingResponse.FromString(message)
        except (DecodeError, ValueError) as error:  # ValueError: text that is not UTF-8
            session.fail(f"the message is not a ProcessingResponse: {error}"[:200])
            return
        if told.HasField("dynamic_metadata") and not keep_metadata(session, told.dynamic_metadata):
            return
        if told.WhichOneof("response") == "immediate_response":
            session.answer_now(told.immediate_response)
            return
        mode = told.mode_override if told.HasField("mode_override") else None
    part = answer.part
    if part == NOTHING:
        count_idle(session)
        return
    side = session.response if part in OF_RESPONSES else session.request
    if part in HEADS:
        head_answered(session, side, answer, mode)
    elif part in BODIES:
        body_answered(session, side, answer, message)
    else:
        trailers_answered(session, side, answer)


def count_idle(session: ProcessingSession) -> None:
    """Count a message that brings the request no further."""
    session.idle += 1
    if session.idle > MOST_IDLE:
        session.fail(f"the processor has sent {session.idle} empty messages")


def unexpected(session: ProcessingSession, side: Direction, part: str) -> None:
    """The answers come in another order than the messages."""
    session.fail(f"unexpected response for {part} of the {side.name}")


def keep_metadata(session: ProcessingSession, found: Any) -> bool:
    """Keep metadata for expressions. Return False if the request has failed over it."""
    assert session.ctx is not None
    session.metadata_bytes += found.ByteSize()
    if session.metadata_bytes > MOST_METADATA:
        session.fail(f"the processor has sent more than {MOST_METADATA} bytes of metadata")
        return False
    session.processor.keep_metadata(session.ctx, found, VARIABLE)
    return True


def head_answered(session: ProcessingSession, side: Direction, answer: ProcessorAnswer, mode: Any) -> None:
    """Change the head, and go on to the body."""
    if not side.awaits_head:
        unexpected(session, side, "the headers")
        return
    side.awaits_head = False
    edit_head(session, side, answer)
    if mode is not None and not override(session, side, mode):
        return
    if answer.status == CONTINUE_AND_REPLACE:
        replace(session, side, answer)
        return
    if not side.response:
        if side.streams:
            session.stream.set_request_length(UNKNOWN_LENGTH)
        if not session.processor.picked(session):
            return
    session.head_done(side)


def edit_head(session: ProcessingSession, side: Direction, answer: ProcessorAnswer) -> None:
    """Apply changes to the head of the request or the response."""
    if not answer.edits_head:
        return
    if side.head is not None:
        answer.edit_response(side.head)
    elif session.ctx is not None:
        answer.edit_request(session.ctx.request)


def override(session: ProcessingSession, side: Direction, mode: Any) -> bool:
    """Take the processor's choice of parts. Return False if the request has failed over it."""
    if not session.processor.options.override:
        return True
    for one, body, trailers in (
        (session.request, mode.request_body_mode, mode.request_trailer_mode),
        (session.response, mode.response_body_mode, mode.response_trailer_mode),
    ):
        if one is session.request and side.response:
            continue        # it has passed
        if body not in MODES_OF_NUMBERS:
            session.fail("the processor asks for a body mode that is not supported")
            return False
        changed = not one.fed and BODY_MODES[one.parts.body] != body
        one.choose(MODES_OF_NUMBERS[body] if changed else None, None if trailers == 0 else trailers == SEND)
        if changed and one is side and one.content:
            change_mode(session, one)
    if not side.response and mode.response_header_mode in (SEND, SKIP):
        session.response.choose_head(mode.response_header_mode == SEND)
    return not session.over


def change_mode(session: ProcessingSession, side: Direction) -> None:
    """The body of the direction whose head was answered goes another way than it has begun to."""
    side.streams = False
    if side.parts.body != "none":
        session.read_body(side)
    elif not side.response:
        session.stream.set_mode(False, PASSES, 0, side.parts.trailers)


def replace(session: ProcessingSession, side: Direction, answer: ProcessorAnswer) -> None:
    """The processor has given another body; it sees no more of this direction."""
    body = answer.body if answer.mutation == ANOTHER_BODY else b""
    side.streams, side.done = False, True
    if side.response:
        if side.content:
            finish(session, side, body)
            session.stream.give_up_source()
        else:
            session.stream.begin_response(KEPT)
            session.stream.set_mode(True, PASSES)
        return
    session.stream.replace_request(body)
    if session.processor.picked(session):
        session.go_on()


def body_answered(session: ProcessingSession, side: Direction, answer: ProcessorAnswer, message: bytes) -> None:
    """Change a body, or send a piece of one on."""
    if side.streams and not side.done and not side.awaits_head:
        if answer.mutation != STREAMED_BODY:
            session.fail(f"a response for the body of the {side.name} is not streamed")
            return
        streamed(session, side, answer, message)
        return
    if not side.awaits_body or answer.mutation == STREAMED_BODY:
        unexpected(session, side, "the body")
        return
    side.awaits_body = False
    edit_head(session, side, answer)
    changed = answer.mutation != 0
    body = answer.body if changed else side.body
    side.body = b""
    if side.cut:
        pass_rest(session, side, body, changed=changed)
    elif side.trailers is not None and side.parts.trailers:
        side.body = body
        session.send_trailers(side)
    else:
        finish(session, side, body)


def streamed(session: ProcessingSession, side: Direction, piece: ProcessorAnswer, message: bytes) -> None:
    """Send a piece of a body on that takes the place of the one that was sent."""
    if piece.body_size:
        session.idle = 0
        session.stream.send(side.response, message, piece.body_at, piece.body_size)
    elif not piece.last:
        count_idle(session)
    if piece.last and not session.over:
        early = not side.ended
        end_stream(session, side)
        if early and side.response:
            session.stream.give_up_source()


def end_stream(session: ProcessingSession, side: Direction) -> None:
    """The processor has given the last of a body that streams."""
    side.done = True
    side.awaits_trailers = False
    session.stream.end(side.response, side.trailers)
    if not side.response and session.ctx is not None:
        session.go_on()
    session.close_if_done()


def trailers_answered(session: ProcessingSession, side: Direction, answer: ProcessorAnswer) -> None:
    """Change the trailers, and send them on."""
    if not side.awaits_trailers or side.awaits_head or side.awaits_body:
        unexpected(session, side, "the trailers")
        return
    side.awaits_trailers = False
    assert side.trailers is not None
    answer.edit_trailers(side.trailers)
    if side.streams:
        end_stream(session, side)
    elif side.parts.body == "none":
        side.done = True
        session.stream.end(side.response, side.trailers)
        session.close_if_done()
    else:
        body, side.body = side.body, b""
        finish(session, side, body)


def finish(session: ProcessingSession, side: Direction, body: bytes) -> None:
    """Send a whole body on."""
    side.done = True
    if side.response:
        session.stream.begin_response(len(body) if side.trailers is None else UNKNOWN_LENGTH)
    else:
        session.stream.set_request_length(len(body) if side.trailers is None else UNKNOWN_LENGTH)
    session.stream.send(side.response, body)
    session.stream.end(side.response, side.trailers)
    if not side.response:
        session.go_on()
    session.close_if_done()


def pass_rest(session: ProcessingSession, side: Direction, prefix: bytes, *, changed: bool) -> None:
    """Send the beginning of a long body on; the rest follows as it comes."""
    side.done = True
    length = UNKNOWN_LENGTH if changed else KEPT
    if side.response:
        session.stream.begin_response(length)
    else:
        session.stream.set_request_length(length)
    session.stream.send(side.response, prefix)
    session.stream.set_mode(side.response, PASSES)
    if not side.response:
        session.go_on()
    session.close_if_done()
