"""`promptGuard` and `guardrails` to the IR and back."""

from __future__ import annotations

import re
from typing import Any, Final, Literal

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.extras import check_cloud
from headgate.config.policy import headers
from headgate.config.policy.expression import check
from headgate.config.policy.guard_service import calls_to, shown_service, webhook_service
from headgate.document import fields
from headgate.document.lazy_dataclass import replace
from headgate.document.nodes import MapEntry
from headgate.errors import Problem
from headgate.ir.match import ValueMatch
from headgate.ir.policy.cloud_auth import AwsAuth, AzureAuth, CloudAuth, GcpAuth
from headgate.ir.policy.key_auth import KeyAuth
from headgate.ir.policy.location import Location
from headgate.ir.policy.prompt_guard import (
    DEFAULT_SCOPES,
    NO_AUTH,
    BedrockGuard,
    ContentSafetyGuard,
    GuardEntry,
    GuardKind,
    GuardRule,
    GuardService,
    ModelArmorGuard,
    ModerationGuard,
    Pairs,
    PromptGuard,
    RegexGuard,
    Rejection,
    WebhookGuard,
)

Phase = Literal["request", "response"]
KINDS: Final = (
    "regex", "webhook", "openAIModeration", "bedrockGuardrails", "googleModelArmor", "azureContentSafety",
)  # fmt: skip
# Kinds that can look at other parts of a prompt than the default ones.
SCOPED: Final = ("regex", "bedrockGuardrails")
PSEUDO: Final = (":path", ":method", ":authority")
IGNORED: Final = (":scheme", ":status")
NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
AZURE_KEY: Final = Location(name="ocp-apim-subscription-key", prefix="")
REGION: Final = re.compile(r"[a-z0-9-]{1,63}")
ID: Final = re.compile(r"[A-Za-z0-9:/._-]{1,2048}")
# `llmRequest` is for webhooks of requests only, as the class has it.
PHASES: Final[dict[Phase, str]] = {"request": "llm", "response": "response guard"}


def parse(context: Context, record: Record | None) -> PromptGuard | None:
    """Return the guards of `promptGuard` or `guardrails`, None without any."""
    if record is None:
        return None
    found = PromptGuard(
        request=_entries(context, record.records("request"), "request"),
        response=_entries(context, record.records("response"), "response"),
    )
    streaming = record.get("streaming")
    if isinstance(streaming, Record):
        found = replace(
            found,
            streaming=streaming.get("mode", "Enabled") == "Enabled",
            stream_masks=streaming.get("masks") == "Apply",
            window=streaming.get("windowBytes", found.window),
            overlap=streaming.get("overlapBytes", found.overlap),
        )
    else:
        found = replace(found, streaming=streaming in (True, "Enabled"))
    return found if found.request or found.response else None


def _entries(context: Context, records: list[Record], phase: Phase) -> tuple[GuardEntry, ...]:
    found = [_entry(context, record, phase) for record in records]
    return tuple(entry for entry in found if entry is not None)


def _entry(context: Context, record: Record, phase: Phase) -> GuardEntry | None:
    kind = next((name for name in KINDS if record.get(name) is not None), None)
    if kind is None:
        return None
    inner: Record = record[kind]
    scopes = tuple(dict.fromkeys(record.get("scope") or DEFAULT_SCOPES))
    if set(scopes) != set(DEFAULT_SCOPES) and kind not in SCOPED:
        message = f"{kind} sees {' and '.join(DEFAULT_SCOPES)}; other scopes are only for {' and '.join(SCOPED)}"
        context.fault(Problem.VALUE, record, "scope", message)
    guard = _kind(context, kind, inner, phase)
    if guard is None:
        return None
    custom = inner.get("response") if kind == "regex" else None
    if custom is not None and record.get("rejection") is not None:
        message = "'regex.response' and 'rejection' exclude each other"
        context.fault(Problem.CONFLICT, record, "rejection", message)
    return GuardEntry(
        guard=guard,
        rejection=_rejection(context, record.get("rejection")) if custom is None else _custom(custom),
        scopes=scopes,
        fail_open=inner.get("failureMode") == "failOpen",
    )


def _custom(record: Record) -> Rejection:
    default = Rejection()
    message = record.get("message")
    return Rejection(
        status=record.get("statusCode", default.status), body=default.body if message is None else message.encode()
    )


def _rejection(context: Context, record: Record | None) -> Rejection:
    default = Rejection()
    if record is None:
        return default
    body = record.get("body")
    if body is None:
        body = default.body
    changed = record.get("headers")
    pairs: Pairs = ()
    if changed is not None:
        modifier = headers.parse_response(context, changed)
        gone = set(modifier.remove)
        pairs = tuple((name, value) for name, value in (*modifier.set, *modifier.add) if name not in gone)
    return Rejection(
        status=record.get("status", default.status),
        body=body.encode() if isinstance(body, str) else bytes(body),
        headers=pairs,
    )


def _kind(context: Context, kind: str, record: Record, phase: Phase) -> GuardKind | None:
    match kind:
        case "regex":
            return _regex(context, record)
        case "webhook":
            return _webhook(context, record, phase)
        case "openAIModeration":
            return _moderation(context, record)
        case "bedrockGuardrails":
            return _bedrock(context, record)
        case "googleModelArmor":
            return _model_armor(context, record)
        case _:
            return _content_safety(context, record, phase)


def _regex(context: Context, record: Record) -> RegexGuard | None:
    rules: list[GuardRule] = []
    for rule in record.records("rules"):
        kind: Literal["builtin", "pattern"] = "builtin" if rule.get("builtin") is not None else "pattern"
        if rule.get(kind) is not None:
            rules.append(GuardRule(kind=kind, text=rule[kind], name=rule.get("name")))
            _check_pattern(context, rule, rules[-1])
    for rule in record.records("matches"):
        rules.append(GuardRule(kind="pattern", text=rule["pattern"], name=rule.get("name")))
        _check_pattern(context, rule, rules[-1])
    rules += [GuardRule(kind="builtin", text=name) for name in record.get("builtins") or ()]
    if not rules:
        context.fault(Problem.VALUE, record, "", "a regex guard needs a pattern or a built-in rule")
        return None
    return RegexGuard(rules=tuple(rules), action=record.get("action", "mask"))


def _check_pattern(context: Context, record: Record, rule: GuardRule) -> None:
    if rule.kind == "pattern":
        from headgate_engine.guard.scan import Scanner  # loaded with the first pattern of a guard

        try:
            Scanner([("pattern", rule.text)])
        except ValueError as error:
            context.fault(Problem.VALUE, record, "pattern", str(error))
    if rule.name is not None and not NAME.fullmatch(rule.name):
        context.fault(Problem.VALUE, record, "name", "a name consists of letters, digits, '.', '_' and '-'")


def _webhook(context: Context, record: Record, phase: Phase) -> WebhookGuard | None:
    service = webhook_service(context, record)
    forwarded = []
    for match in record.records("forwardHeaderMatches"):
        value = match.get("value")
        if value is not None:
            kind: Literal["exact", "regex"] = "exact" if "exact" in value else "regex"
            forwarded.append(ValueMatch(name=match["name"], kind=kind, value=value[kind]))
    node = record.at("headers")
    inner = Record(node.node if isinstance(node, MapEntry) else record.node, f"{record.path}.headers", {})
    pairs = []
    for name, text in (record.get("headers") or {}).items():
        lower = name.lower()
        if lower in IGNORED:
            continue
        if lower not in PSEUDO:
            try:
                lower = fields.header_name(lower)
            except ValueError as error:
                context.fault(Problem.VALUE, inner, name, str(error))
                continue
        check(context, inner, name, text, PHASES[phase])
        pairs.append((lower, text))
    if service is None:
        return None
    return WebhookGuard(service=service, headers=tuple(pairs), forwarded=tuple(forwarded))


def _moderation(context: Context, record: Record) -> ModerationGuard | None:
    service = calls_to(context, record, "https://api.openai.com")
    if service is None:
        return None
    if service.auth == NO_AUTH:
        context.fault(Problem.MISSING, record, "policies", "OpenAI moderation needs 'policies.backendAuth.key'")
    guard, model = ModerationGuard(service=service), record.get("model")
    return replace(guard, model=model) if model else guard


def _bedrock(context: Context, record: Record) -> BedrockGuard | None:
    region = record.get("region") or ""
    for key in ("guardrailIdentifier", "guardrailVersion"):
        if record.get(key) is None:
            context.fault(Problem.MISSING, record, "", f"missing field {key!r}")
            return None
    _check_text(context, record, "region", REGION)
    _check_text(context, record, "guardrailIdentifier", ID)
    _check_text(context, record, "guardrailVersion", NAME)
    service = calls_to(context, record, f"https://bedrock-runtime.{region}.amazonaws.com")
    if service is None:
        return None
    service = _with_cloud(context, record, service, AwsAuth())
    signed = service.auth.main
    if isinstance(signed, AwsAuth):
        at_home = replace(signed, region=signed.region or region, service=signed.service or "bedrock")
        service = service.with_credential(at_home)
    return BedrockGuard(
        service=service,
        identifier=record["guardrailIdentifier"],
        version=record["guardrailVersion"],
        region=region,
    )


def _check_text(context: Context, record: Record, key: str, form: re.Pattern[str]) -> None:
    text = record.get(key)
    if text is not None and not form.fullmatch(text):
        context.fault(Problem.VALUE, record, key, f"must match {form.pattern}")


def _model_armor(context: Context, record: Record) -> ModelArmorGuard | None:
    for key in ("templateId", "projectId", "location"):
        _check_text(context, record, key, NAME)
    location = record.get("location") or "us-central1"
    service = calls_to(context, record, f"https://modelarmor.{location}.rep.googleapis.com")
    if service is None:
        return None
    service = _with_cloud(context, record, service, GcpAuth())
    return ModelArmorGuard(
        service=service, template=record["templateId"], project=record["projectId"], location=location
    )


def _with_cloud(context: Context, record: Record, service: GuardService, own: CloudAuth) -> GuardService:
    """Return the service with credentials of its cloud where it has no others."""
    main = service.auth.main
    if isinstance(main, CloudAuth) and type(main) is not type(own):
        context.fault(Problem.VALUE, record, "policies", "these credentials are for another cloud")
    if service.auth != NO_AUTH:
        return service
    check_cloud(context, record, "", own)
    return service.with_credential(own)


def _content_safety(context: Context, record: Record, phase: Phase) -> ContentSafetyGuard | None:
    endpoint = record["endpoint"]
    analyze, jailbreak = record.get("analyzeText"), record.get("detectJailbreak")
    if phase == "response" and jailbreak is not None:
        context.fault(Problem.VALUE, record, "detectJailbreak", "responses are not checked for attacks")
    service = calls_to(context, record, endpoint if "://" in endpoint else f"https://{endpoint}", key="endpoint")
    if service is None:
        return None
    service = _with_cloud(context, record, service, AzureAuth())
    policies = record.get("policies")
    auth = policies.get("backendAuth") if policies is not None else None
    key = auth.get("key") if isinstance(auth, Record) else None
    main, placed = service.auth.main, isinstance(key, Record) and key.get("location") is not None
    if key is not None and isinstance(main, KeyAuth) and not placed:
        # A key that says nothing about its place goes where Azure looks for one.
        service = service.with_credential(replace(main, location=AZURE_KEY))
    guard = ContentSafetyGuard(service=service, analyze=analyze is not None or jailbreak is None)
    if jailbreak is not None:
        guard = replace(guard, jailbreak_version=jailbreak.get("apiVersion") or "2024-02-15-preview")
    if analyze is None:
        return guard
    threshold = analyze.get("severityThreshold")
    return replace(
        guard,
        threshold=guard.threshold if threshold is None else threshold,
        version=analyze.get("apiVersion") or guard.version,
        blocklists=tuple(analyze.get("blocklistNames") or ()),
        halt_on_hit=bool(analyze.get("haltOnBlocklistHit")),
    )


# -- the dump ----------------------------------------------------------------------------------------------------------
def dump(guard: PromptGuard) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    found: dict[str, Any] = {}
    for phase in ("request", "response"):
        entries: tuple[GuardEntry, ...] = getattr(guard, phase)
        if entries:
            found[phase] = [_shown(entry) for entry in entries]
    if guard.streaming:
        found["streaming"] = {
            "mode": "Enabled",
            "masks": "Apply" if guard.stream_masks else "PassThrough",
            "windowBytes": guard.window,
            "overlapBytes": guard.overlap,
        }
    return found


def _shown(entry: GuardEntry) -> dict[str, Any]:
    kind, fields_shown = _shown_kind(entry.guard)
    if not isinstance(entry.guard, RegexGuard):
        fields_shown["failureMode"] = "failOpen" if entry.fail_open else "failClosed"
    rejection: dict[str, Any] = {
        "status": entry.rejection.status, "body": entry.rejection.body.decode("utf-8", "replace"),
    }  # fmt: skip
    if entry.rejection.headers:
        rejection["headers"] = {"set": dict(entry.rejection.headers)}
    return {kind: fields_shown, "scope": list(entry.scopes), "rejection": rejection}


def _shown_kind(guard: GuardKind) -> tuple[str, dict[str, Any]]:
    if isinstance(guard, RegexGuard):
        rules = [{rule.kind: rule.text} | ({"name": rule.name} if rule.name else {}) for rule in guard.rules]
        return "regex", {"action": guard.action, "rules": rules}
    shown = shown_service(guard.service)
    if isinstance(guard, WebhookGuard):
        shown["headers"] = dict(guard.headers)
        shown["forwardHeaderMatches"] = [{"name": one.name, "value": {one.kind: one.value}} for one in guard.forwarded]
        return "webhook", shown
    if isinstance(guard, ModerationGuard):
        return "openAIModeration", shown | {"model": guard.model}
    if isinstance(guard, BedrockGuard):
        shown |= {
            "guardrailIdentifier": guard.identifier, "guardrailVersion": guard.version, "region": guard.region,
        }  # fmt: skip
        return "bedrockGuardrails", shown
    if isinstance(guard, ModelArmorGuard):
        shown |= {"templateId": guard.template, "projectId": guard.project, "location": guard.location}
        return "googleModelArmor", shown
    if guard.analyze:
        shown["analyzeText"] = {
            "severityThreshold": guard.threshold,
            "apiVersion": guard.version,
            "blocklistNames": list(guard.blocklists),
            "haltOnBlocklistHit": guard.halt_on_hit,
        }
    if guard.jailbreak_version is not None:
        shown["detectJailbreak"] = {"apiVersion": guard.jailbreak_version}
    return "azureContentSafety", shown
