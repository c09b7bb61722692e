"""What each guard sees of each body, as one table.

`--validate-only`, the configuration dump, the admin page, the warning at the start and the table of docs/guards.md are
made from it; `tests/end_to_end/test_guard_coverage.py` compares it with what happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.policy.prompt_guard import (
    BedrockGuard,
    ContentSafetyGuard,
    GuardEntry,
    GuardKind,
    ModelArmorGuard,
    ModerationGuard,
    PromptGuard,
    RegexGuard,
    WebhookGuard,
)

Side = Literal["request", "response"]
Shape = Literal["plain", "stream", "tools", "reasoning", "files", "realtime", "other"]
# `refusals`: the guard may refuse the text; what it would mask passes.
Seen = Literal["yes", "refusals", "no"]
Formats = tuple[str, ...]

CHAT: Final[Formats] = ("completions", "messages", "responses", "gemini", "converse")
REALTIME: Final[Formats] = ("realtime",)
NONE: Final[Formats] = ()
OFF: Final = "`streaming` is off"
UNMASKED: Final = "masks do not apply to streams (`streaming.masks: Apply`)"
BESIDE_STREAMS: Final = "only masks of patterns apply to streams"
UNMASKED_EVENTS: Final = "masks do not apply to events (`streaming.masks: Apply`)"
UNTOLD: Final = "webhooks get messages, not tools"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardPlace:
    """One place of texts in bodies.

    `formats`: those that have it, by their names in the engine. `scope`: the scope by which guards reach it; None means
    that none does, for the reason `why`. `webhook`: the formats in which webhooks are told it.
    """

    side: Side
    shape: Shape
    name: str
    formats: Formats = CHAT
    scope: str | None = None
    webhook: Formats = NONE
    why: str = ""


def _request(shape: Shape, name: str, formats: Formats, scope: str, webhook: Formats = NONE) -> GuardPlace:
    return GuardPlace(side="request", shape=shape, name=name, formats=formats, scope=scope, webhook=webhook)


def _never(side: Side, shape: Shape, name: str, why: str, formats: Formats = CHAT) -> GuardPlace:
    return GuardPlace(side=side, shape=shape, name=name, formats=formats, why=why)


def _answer(shape: Shape, formats: Formats = CHAT) -> GuardPlace:
    return GuardPlace(
        side="response", shape=shape, name="the answer", formats=formats, scope="messages", webhook=formats
    )


VARIABLES: Final[Formats] = ("responses", "converse")
DOCUMENTS: Final[Formats] = ("messages", "converse")
OTHER: Final[Formats] = ("embeddings", "rerank", "count_tokens", "gemini_count_tokens")
DATA: Final = "data and addresses are not read"
THOUGHTS: Final = "reasoning is not read"
PLACES: Final = (
    _request("plain", "system prompt", CHAT, "systemPrompt", CHAT),
    _request("plain", "messages", CHAT, "messages", CHAT),
    _request("plain", "variables of a stored prompt", VARIABLES, "messages", VARIABLES),
    _request("tools", "earlier tool calls", CHAT, "toolInput"),
    _request("tools", "results of tools", CHAT, "toolOutput", ("completions",)),
    _never("request", "tools", "definitions of tools", "names, descriptions and schemas are not read"),
    _never("request", "reasoning", "earlier reasoning", THOUGHTS),
    _request("files", "documents as text", DOCUMENTS, "messages", DOCUMENTS),
    _request("files", "text files in base64", CHAT, "messages", CHAT),
    _never("request", "files", "images, audio and other files", DATA),
    _request("realtime", "system prompt", REALTIME, "systemPrompt", REALTIME),
    _request("realtime", "messages", REALTIME, "messages", REALTIME),
    _request("realtime", "variables of a stored prompt", REALTIME, "messages", REALTIME),
    _request("realtime", "earlier tool calls", REALTIME, "toolInput"),
    _request("realtime", "results of tools", REALTIME, "toolOutput"),
    _never("request", "realtime", "definitions of tools", "names, descriptions and schemas are not read", REALTIME),
    _never("request", "realtime", "images and audio", DATA, REALTIME),
    _never("request", "other", "embeddings, rerank, token counts", "they are not conversations", OTHER),
    _answer("plain"),
    _answer("stream"),
    _never("response", "tools", "tool calls", "inputs of tools are not read"),
    _never("response", "reasoning", "reasoning", THOUGHTS),
    _never("response", "files", "images and audio", DATA),
    _answer("realtime", REALTIME),
    _never("response", "realtime", "tool calls", "inputs of tools are not read", REALTIME),
    _never("response", "realtime", "audio and its transcript", "audio is passed on at once", REALTIME),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardActs:
    """What a kind of guard may do. `scoped`: its `scope` may have tools."""

    refuses: bool = True
    masks: bool = False
    scoped: bool = False
    sides: tuple[Side, ...] = ("request", "response")


KINDS: Final[dict[str, GuardActs]] = {
    "regex: reject": GuardActs(scoped=True),
    "regex: mask": GuardActs(refuses=False, masks=True, scoped=True),
    "webhook": GuardActs(masks=True),
    "openAIModeration": GuardActs(sides=("request",)),
    "bedrockGuardrails": GuardActs(masks=True, scoped=True),
    "googleModelArmor": GuardActs(),
    "azureContentSafety": GuardActs(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardSight:
    """Whether one guard sees one place. `formats`: those that this is about. `why`: the reason for what is not seen."""

    place: GuardPlace
    formats: Formats
    seen: Seen
    why: str = ""


def kind_of(guard: GuardKind) -> str:
    """Return the key of KINDS for a guard."""
    match guard:
        case RegexGuard():
            return f"regex: {guard.action}"
        case WebhookGuard():
            return "webhook"
        case ModerationGuard():
            return "openAIModeration"
        case BedrockGuard():
            return "bedrockGuardrails"
        case ModelArmorGuard():
            return "googleModelArmor"
        case ContentSafetyGuard():
            return "azureContentSafety"


def sights(guard: PromptGuard, entry: GuardEntry, side: Side) -> Iterator[GuardSight]:
    """Yield what an entry of `guard.request` or `guard.response` sees, in the order of the table."""
    kind = kind_of(entry.guard)
    for place in PLACES:
        if place.side != side:
            continue
        told = place.webhook if kind == "webhook" and place.scope is not None else place.formats
        if told:
            seen, why = _seen(guard, entry, kind, place)
            yield GuardSight(place=place, formats=told, seen=seen, why=why)
        left = tuple(form for form in place.formats if form not in told)
        if left:
            yield GuardSight(place=place, formats=left, seen="no", why=UNTOLD)


def _seen(guard: PromptGuard, entry: GuardEntry, kind: str, place: GuardPlace) -> tuple[Seen, str]:
    acts = KINDS[kind]
    if place.scope is None:
        return "no", place.why
    if kind != "webhook" and place.side == "request" and place.scope not in entry.scopes:
        return "no", f"`scope` is without {place.scope}" if acts.scoped else "this guard reads no tools"
    if place.shape not in ("stream", "realtime"):
        return "yes", ""
    if not guard.streaming:
        return "no", OFF
    masked = guard.stream_masks and (place.side == "request" or kind == "regex: mask")
    if not acts.masks or masked:
        return "yes", ""
    why = UNMASKED_EVENTS if place.side == "request" else UNMASKED if not acts.refuses else BESIDE_STREAMS
    return ("refusals" if acts.refuses else "no"), why


def rows(guard: PromptGuard) -> list[dict[str, object]]:
    """Return all that the guards see and do not see as JSON, one row for each guard and place."""
    return [
        {
            "side": side, "number": number, "guard": kind_of(entry.guard), "shape": one.place.shape,
            "text": one.place.name, "formats": list(one.formats), "seen": one.seen,
            **({"why": one.why} if one.why else {}),
        }
        for side, entries in _sides(guard)
        for number, entry in enumerate(entries, 1)
        for one in sights(guard, entry, side)
    ]  # fmt: skip


def summary(guard: PromptGuard) -> dict[str, list[dict[str, object]]]:
    """Return the same for the configuration dump: what each guard sees, refuses only, and does not see."""
    found: dict[str, list[dict[str, object]]] = {}
    for side, entries in _sides(guard):
        for entry in entries:
            by: dict[str, dict[str, str]] = {"yes": {}, "refusals": {}, "no": {}}
            for one in sights(guard, entry, side):
                by[one.seen][_named(one)] = one.why
            shown: dict[str, object] = {"guard": kind_of(entry.guard), "sees": list(by["yes"])}
            if by["refusals"]:
                shown["refusesOnly"] = by["refusals"]
            found.setdefault(side, []).append(shown | {"doesNotSee": by["no"]})
    return found


def _sides(guard: PromptGuard) -> tuple[tuple[Side, tuple[GuardEntry, ...]], ...]:
    return ("request", guard.request), ("response", guard.response)


def unseen(guard: PromptGuard, open_paths: bool) -> str:
    """Return what no guard of a side sees whole, in words for a warning.

    `open_paths`: paths of unknown formats pass.
    """
    told = ["paths of no known format"] if open_paths else []
    for side, entries in _sides(guard):
        if not entries:
            told.append(f"{side}s at all: there is no guard for them")
            continue
        whole: dict[str, bool] = {}
        for entry in entries:
            for one in sights(guard, entry, side):
                name = _named(one)
                whole[name] = whole.get(name, False) or one.seen == "yes"
        left = [name for name, good in whole.items() if not good]
        told.append(f"of {side}s: {', '.join(left)}")
    return f"guards do not check {'; '.join(told)} (docs/guards.md#what-guards-see)"


def _named(one: GuardSight) -> str:
    """Return the place of a sight with its body, and with its formats where these are not all."""
    place = one.place
    name = place.name if place.shape in ("plain", "other") else f"{place.name} ({place.shape})"
    return name if one.formats == place.formats else f"{name} in {', '.join(one.formats)}"


# -- the page of the documents -----------------------------------------------------------------------------------------
MARKS: Final = {True: "yes", False: "-"}


def table() -> str:
    """Return the table of docs/guards.md."""
    lines = [
        "| side | body | text | read by `scope` | regex, Bedrock | webhook | the others |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for place in PLACES:
        scope = "-" if place.scope is None else f"`{place.scope}`" if place.side == "request" else "always"
        plain = place.scope in ("systemPrompt", "messages")
        webhook = "yes" if place.webhook == place.formats else ", ".join(place.webhook) or "-"
        cells = (place.side, place.shape, place.name, scope, MARKS[place.scope is not None], webhook, MARKS[plain])
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
