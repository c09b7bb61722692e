"""Long request bodies are translated and counted in a thread, in slices between which the event loop can run.

A step does the work before the engine needs its result, and leaves it in the call. The engine uses it only for the very
body that it was made of, and does the work itself otherwise.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from headgate.backend.llm.off_loop import CODED_BYTES, LONG_BYTES, PEEK_BYTES, off_loop
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.llm.attempt import LlmCall
from headgate_engine.llm.backend import counted_format
from headgate_engine.llm.batches import BATCH, is_batch, looked_at
from headgate_engine.llm.bodies import DECODED, MEMBERS, NAMED, PEEKED, UNPACKED, deployment_of
from headgate_engine.llm.edit import edit
from headgate_engine.llm.estimate import tokens_of_document
from headgate_engine.llm.router import ModelRouter
from headgate_engine.llm.top_members import read_ahead, read_members
from headgate_engine.llm.translate.readers import Garbage
from headgate_engine.llm.translate.sliced import load_sliced
from headgate_engine.steps.long_body import LongBodyStep
from headgate_engine.wire.coding import CodingError, decode, name_of

if TYPE_CHECKING:  # loaded by a configuration with virtual keys
    from headgate_engine.steps.virtual_key import KeyUse


def counting_step() -> LongBodyStep:
    """Return the step that estimates the tokens of a long prompt, for `tokenize`."""
    return LongBodyStep("tokenize", _count, LONG_BYTES)


def measuring_step() -> LongBodyStep:
    """Return the step that reads what a long request may come to, for the limits of virtual keys."""
    return LongBodyStep("apiKey", _measure, LONG_BYTES)


def translation_step() -> LongBodyStep:
    """Return the step that makes a long request fit for its provider: translated or without turns of other vendors, and
    in the provider's dialect.
    """
    return LongBodyStep("translation", _translate, LONG_BYTES)


def reading_step(router: ModelRouter, asked: bool) -> LongBodyStep:
    """Return the step that reads a long body before a provider is chosen: takes it out of its content coding, looks for
    what routing and edits need, and reads its JSON for a count of tokens, or for expressions if these ask.
    """

    def read(ctx: RequestContext) -> Awaitable[None] | None:
        body = ctx.request_body
        if body is None:
            return None
        coding = name_of(ctx.request.get("content-encoding"))
        form = counted_format(router, ctx)
        if coding:
            return _unpack(ctx, body, coding, router.max_body, form, asked)
        # The engine refuses a coding that it does not know.
        return _read(ctx, body, form, asked) if coding is None and is_long(body, form, asked) else None

    return LongBodyStep("long body", read, CODED_BYTES)


def is_long(body: bytes, form: str | None, asked: bool) -> bool:
    """Return whether something of a body is read beside the loop."""
    return len(body) > PEEK_BYTES or is_read(body, form, asked)


def is_read(body: bytes, form: str | None, asked: bool) -> bool:
    """Return whether a body's JSON is wanted, and long."""
    return len(body) > LONG_BYTES and (asked or form is not None)


async def _unpack(ctx: RequestContext, body: bytes, coding: str, most: int, form: str | None, asked: bool) -> None:
    found = await off_loop(unpacked, coding, body, most)
    ctx.dynamic = {**(ctx.dynamic or {}), UNPACKED: (body, found)}
    if isinstance(found, bytes) and is_long(found, form, asked):
        await _read(ctx, found, form, asked)


def unpacked(coding: str, body: bytes, most: int) -> bytes | CodingError:
    """Return a body without its content coding, or why that cannot be: also if it has more than `most` bytes."""
    try:
        return decode(coding, body, most)
    except CodingError as error:
        return error


async def _read(ctx: RequestContext, body: bytes, form: str | None, asked: bool) -> None:
    if len(body) > PEEK_BYTES:
        ctx.dynamic = {**(ctx.dynamic or {}), **await off_loop(looked_through, body, deployment_of(ctx))}
        if is_batch(ctx.request.method, ctx.request.path.encode("latin-1", "replace")):
            ctx.dynamic = {**ctx.dynamic, BATCH: await off_loop(looked_at, body)}
    if not is_read(body, form, asked):
        return
    found = await off_loop(read_document, body, form)
    if found is not None:
        ctx.dynamic = {**(ctx.dynamic or {}), DECODED: (body, *found)}


def looked_through(body: bytes, deployment: str | None) -> dict[str, object]:
    """Return what the engine wants to know of a body, by its names. deployment: the model that the path names."""
    peek, members = read_ahead(body)
    if deployment is None or members is None:
        return {PEEKED: (body, peek, members)}
    named = edit(body, {"model": json.dumps(deployment).encode()})
    return {NAMED: (body, named), PEEKED: (named, *read_ahead(named))}


def read_document(body: bytes, form: str | None) -> tuple[Any, int] | None:
    """Return a body's JSON, and about how many tokens a request in format `form` has; -1 without a format.

    None for what is no JSON, which the engine refuses.
    """
    try:
        document = load_sliced(body)
        return document, -1 if form is None else tokens_of_document(form, document)
    except (Garbage, RecursionError):
        return None


def adapted(adapt: Callable[[bytes, bool], bytes], body: bytes, streaming: bool) -> bytes | None:
    """Return a body in the provider's dialect; None for one that is no JSON object, of which there is none."""
    try:
        return adapt(body, streaming)
    except (ValueError, RecursionError):
        return None


def _count(ctx: RequestContext) -> Awaitable[None] | None:
    call: LlmCall | None = ctx.llm
    body = ctx.request_body
    if call is None or body is None or call.prompt_estimate >= 0:
        return None
    return _counted(call, body)


async def _counted(call: LlmCall, body: bytes) -> None:
    call.prompt_estimate = await off_loop(estimate, call.format, body)


def estimate(form: str, body: bytes) -> int:
    """Return about how many tokens a request in a client's format has; 0 for one that is no JSON object."""
    try:
        return tokens_of_document(form, load_sliced(body))
    except (Garbage, RecursionError):
        return 0


def _measure(ctx: RequestContext) -> Awaitable[None] | None:
    call: LlmCall | None = ctx.llm
    use, body = ctx.key_use, ctx.request_body
    if call is None or use is None or body is None or use.knows(body):
        return None
    read: Any = (ctx.dynamic or {}).get(DECODED)
    known = read is not None and read[0] is body       # routing has read it
    return _measured(use, call.format, body, read[1] if known else None)


async def _measured(use: KeyUse, form: str, body: bytes, document: Any) -> None:
    use.note(body, await off_loop(measure, form, body, document))


def measure(form: str, body: bytes, document: Any) -> tuple[int, int, int, int, int, tuple[int, int, int, int, bool]]:
    """Return what a request may come to, as worst_of() does. document: its JSON, None: it was not read."""
    from headgate_engine.llm.bounds import worst_of  # with the step that reserves

    if document is None:
        with contextlib.suppress(Garbage, RecursionError):
            document = load_sliced(body)
    return worst_of(form, body, document)


def _translate(ctx: RequestContext) -> Awaitable[None] | None:
    call: LlmCall | None = ctx.llm
    body = ctx.request_body
    if call is None or body is None:
        return None
    if call.translation is not None:
        return _translated(ctx, call, body, call.translation)
    if call.history is not None and call.history.is_in(body):
        return _cleaned(ctx, call, body, call.history.clean)
    return _finished(ctx, call, body) if call.edits_final or call.adapt is not None else None


async def _translated(ctx: RequestContext, call: LlmCall, body: bytes, translation: Any) -> None:
    made = await off_loop(translation.request, body, call, ctx.request)
    call.translated = (body, made)
    if not isinstance(made, Reply):
        await _finished(ctx, call, made[0])


async def _cleaned(ctx: RequestContext, call: LlmCall, body: bytes, clean: Callable[[bytes], bytes]) -> None:
    made = await off_loop(clean, body)
    call.translated = (body, made)
    await _finished(ctx, call, made)


async def _finished(ctx: RequestContext, call: LlmCall, body: bytes) -> None:
    """Put a body into the provider's dialect, and read it for the expressions that edit what goes to the provider."""
    if call.adapt is not None:
        made = await off_loop(adapted, call.adapt, body, call.streaming)
        if made is None:
            return
        call.adapted = (body, made)
        body = made
    if not call.edits_final:
        return
    found = await off_loop(read_document, body, None)
    if found is not None:
        call.final_document = (body, found[0])
        if isinstance(found[0], dict):
            ctx.dynamic = {**(ctx.dynamic or {}), MEMBERS: (body, await off_loop(read_members, body))}
