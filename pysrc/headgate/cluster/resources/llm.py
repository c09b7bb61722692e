"""What is done with bodies of LLM requests and replies: prompts, guards, defaults, caching."""

from __future__ import annotations

from typing import Final

from headgate.cluster.resources.connection import SIMPLE
from headgate.cluster.resources.formats import (
    CEL,
    CEL_MAP,
    FAILURE_MODE,
    HEADER_VALUE,
    ONE_ENDPOINT,
    PSEUDO_NAME,
    SHORT,
    endpoint,
)
from headgate.cluster.resources.schema import (
    ANYTHING,
    Json,
    at_least_one,
    at_most_one,
    default,
    described,
    exactly_one,
    flag,
    listed,
    mapped,
    record,
    rule,
    text,
    words,
)
from headgate.cluster.resources.shapes import entry, like, of, words_of
from headgate.config.shape import guard
from headgate.config.shape.vocabulary import WordChoice
from headgate.document.fields import MAX_PATTERN_CHARS

JSON_VALUE: Final = dict(ANYTHING)
REJECTED: Final = "The request was rejected due to inappropriate content"


def _named(item: Json, name: str) -> Json:
    """Return a list of up to 64 `{field, ...}`, no two for the same field."""
    return listed(record({"field": SHORT, name: item}, required=("field", name)), 1, 64, key="field")


FIELD_VALUES: Final = _named(JSON_VALUE, "value")
FIELD_EXPRESSIONS: Final = _named(CEL, "expression")

MESSAGE: Final = record({"role": text(1, 64), "content": text(1, 65_536)}, required=("role", "content"))
PROMPT: Final = record(
    {"prepend": listed(MESSAGE, 1, 64), "append": listed(MESSAGE, 1, 64)}, rules=(at_least_one("prepend", "append"),)
)

_RESPONSE: Final = like(
    guard.CUSTOM_RESPONSE,
    {
        "message": default(text(1, 4_096), REJECTED),
        "statusCode": default(of(entry(guard.CUSTOM_RESPONSE, "statusCode")), 403),
    },
)
# The pattern itself, or `{pattern, name}`: of two types, so without one in the schema.
_MATCH: Final[Json] = {"maxLength": MAX_PATTERN_CHARS, "allOf": [{"required": ["pattern"]}], **ANYTHING}
REGEX: Final[Json] = {
    **record(
        {
            "action": default(of(entry(guard.REGEX_GUARD, "action")), "Mask"),
            "matches": listed(_MATCH, 1, 64),
            "builtins": listed(words_of(guard.BUILTIN), 1, len(guard.BUILTIN.words), unique=True),
            "response": _RESPONSE,
        }
    ),
    # CEL does not see a list of items without a type.
    "anyOf": [{"required": ["matches"]}, {"required": ["builtins"]}],
}
_HEADER_MATCH: Final = record(
    {"name": PSEUDO_NAME, "value": HEADER_VALUE, "type": default(words("Exact", "RegularExpression"), "Exact")},
    required=("name", "value"),
)
WEBHOOK: Final = record(
    {
        **endpoint(path=False),
        "headers": CEL_MAP,
        "forwardHeaderMatches": listed(_HEADER_MATCH, 1, 64),
        "failureMode": FAILURE_MODE,
    },
    rules=(ONE_ENDPOINT,),
)
_CALL: Final = {"policies": SIMPLE, "failureMode": FAILURE_MODE}
MODERATION: Final = like(
    guard.MODERATION, {"model": default(SHORT, "omni-moderation-latest"), **_CALL}, without=("baseUrl",)
)
BEDROCK: Final = record(
    {"identifier": SHORT, "version": SHORT, "region": SHORT, **_CALL}, required=("identifier", "version", "region")
)
MODEL_ARMOR: Final = like(
    guard.MODEL_ARMOR,
    {"templateId": SHORT, "projectId": SHORT, "location": default(SHORT, "us-central1"), **_CALL},
    without=("baseUrl",),
)
CONTENT_SAFETY: Final = like(guard.CONTENT_SAFETY, _CALL)

_RESPONSE_KINDS: Final = {
    "regex": REGEX,
    "webhook": WEBHOOK,
    "bedrockGuardrails": BEDROCK,
    "googleModelArmor": MODEL_ARMOR,
    "azureContentSafety": CONTENT_SAFETY,
}
_REQUEST_KINDS: Final = {**_RESPONSE_KINDS, "openAIModeration": MODERATION}
_SCOPED: Final = rule(
    "!has(self.scope) || has(self.regex) || has(self.bedrockGuardrails) || "
    "self.scope.all(s, s in ['SystemPrompt', 'Messages'])",
    "a scope other than SystemPrompt and Messages needs regex or bedrockGuardrails",
)
PROMPT_GUARD: Final = record(
    {
        "streaming": described(words_of(guard.STREAMING_MODE), "Whether streams and realtime messages are guarded."),
        "request": listed(
            record(
                {"scope": listed(words_of(guard.CONTENT_SCOPE), 1, 4, unique=True), **_REQUEST_KINDS},
                rules=(exactly_one(*_REQUEST_KINDS), _SCOPED),
            ),
            1,
            guard.MOST_GUARDS,
        ),
        "response": listed(record(_RESPONSE_KINDS, rules=(exactly_one(*_RESPONSE_KINDS),)), 1, guard.MOST_GUARDS),
    },
    rules=(at_least_one("request", "response"),),
)
PROMPT_CACHING: Final = like(
    guard.PROMPT_CACHING,
    {
        "cacheSystem": default(flag(), True),
        "cacheMessages": default(flag(), True),
        "cacheTools": default(flag(), False),
        "minTokens": default(of(entry(guard.PROMPT_CACHING, "minTokens")), 1024),
        "cacheMessageOffset": default(of(entry(guard.PROMPT_CACHING, "cacheMessageOffset")), 0),
    },
)
ROUTE_TYPES: Final = of(WordChoice("AiRouteType", guard.ROUTE_TYPES))

AI_FIELDS: Final = {
    "prompt": PROMPT,
    "promptEnrichment": described(PROMPT, "Another name of prompt."),
    "promptGuard": PROMPT_GUARD,
    "promptCaching": PROMPT_CACHING,
    "defaults": FIELD_VALUES,
    "overrides": FIELD_VALUES,
    "transformations": FIELD_EXPRESSIONS,
    "finalTransformations": FIELD_EXPRESSIONS,
    "modelAliases": mapped(SHORT, 64),
    "unsupportedParameters": words_of(guard.UNSUPPORTED),
    "routes": mapped(ROUTE_TYPES, 64),
}
AI: Final = record(AI_FIELDS, rules=(at_least_one(*AI_FIELDS), at_most_one("prompt", "promptEnrichment")))
