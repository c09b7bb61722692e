"""What each endpoint of the admin server does: words, parameters, bodies and answers, by method and path.

Which endpoints there are is not said here but by the server's own table (headgate.admin.routes): generate.py compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from shapes import INTEGER, TEXT, Schema, named

JSON: Final = "application/json"
PLAIN: Final = "text/plain"
EVENTS: Final = "text/event-stream"
PROFILE: Final = "application/octet-stream"


class Answer(NamedTuple):
    """One status. `schema` None: no body that a schema tells."""

    about: str
    schema: Schema | None = None
    kind: str = JSON


class Parameter(NamedTuple):
    """One parameter of the query or field of the head."""

    name: str
    about: str
    schema: Schema = TEXT
    place: str = "query"


class Operation(NamedTuple):
    """One method at one path. `body`: the schema of the request, None if it has none."""

    tag: str
    summary: str
    answers: Mapping[int, Answer]
    parameters: tuple[Parameter, ...] = ()
    body: Schema | None = None


def reasons(**told: str) -> dict[int, Answer]:
    """Answers whose body is a reason as a JSON text: s404="there is none"."""
    return {int(status[1:]): Answer(about, named("Reason")) for status, about in told.items()}


def words(**told: str) -> dict[int, Answer]:
    """Answers that are plain text."""
    return {int(status[1:]): Answer(about, TEXT, PLAIN) for status, about in told.items()}


def found(name: str, about: str, status: int = 200) -> dict[int, Answer]:
    """An answer with a document."""
    return {status: Answer(about, named(name))}


IF_MATCH: Final = Parameter("if-match", "the revision that the change is based on, or `*`", TEXT, "header")
STORED: Final = reasons(
    s400="the body is not what is expected", s404="there is none, or no such kind",
    s409="the revision is another one, or the file owns it",
    s422="the configuration that it would lead to has faults", s500="the database cannot be read or written",
)  # fmt: skip
KEY_FAULTS: Final = {status: STORED[status] for status in (400, 404, 409, 422, 500)}
RELAYED: Final = {
    200: Answer("lines of JSON: the head, pieces of the body, the end", None, "application/x-ndjson"),
    400: Answer("the request is not one that may be sent", named("Error")),
    503: Answer("too many are under way", named("Error")),
}
STATE: Final = Operation(
    "page", "All values of the page that change", found("State", "the values; at most half a second old")
)
HISTORY: Final = Operation(
    "page", "Sums of all traffic of the last hour", found("History", "a point every 15 seconds"),
    parameters=(Parameter("since", "only points after this time, in ms since 1970"),),
)  # fmt: skip
GUARDS: Final = Operation(
    "page", "What the guards of each route see",
    found("Coverage", "at most 2,000 rows; `cut` says whether there are more"),
    parameters=(Parameter("route", "only the rows of the route with this key"),),
)  # fmt: skip
MCP: Final = Operation(
    "page", "MCP targets: state, version, calls, errors and latency, as calls of clients tell",
    found("McpTargets", "at most 1,000; times in ms since 1970"),
)  # fmt: skip
RELAY: Final = Operation("page", "Send one request to a port of this gateway", RELAYED, body=named("RelayRequest"))
CEL: Final = Operation(
    "expressions", "Evaluate an expression with values given",
    found("Evaluated", "the result, or how the evaluation failed") | found("Evaluated", "it does not compile", 400)
    | found("Evaluated", "too many wait", 503),
    body=named("Expression"),
)  # fmt: skip
TRACE: Final = Operation(
    "diagnosis", "Events of each request that matches, as they happen",
    {200: Answer("one event a step", None, EVENTS)}
    | words(s400="the expression does not compile", s503="too many watch"),
    (Parameter("expression", "which requests (CEL); all without one"),),
)  # fmt: skip
LOG_FAULTS: Final = reasons(s400="the question is not understood", s500="there is no request log, or it cannot be read")
QUESTION: Final[Schema] = {"type": "object", "description": "See request-log.md."}

OPERATIONS: Final[dict[tuple[str, str], Operation]] = {
    ("GET", "/"): Operation("page", "Leads to `/ui`", {308: Answer("to /ui")}),
    ("GET", "/ui"): Operation("page", "The admin page", {200: Answer("the page", None, "text/html")}),
    ("GET", "/ui/{path}"): Operation(
        "page",
        "A file or a view of the page",
        {200: Answer("the file", None, "text/html"), 404: Answer("no such file")},
    ),
    ("GET", "/api/state"): STATE,
    ("POST", "/api/relay"): RELAY,
    ("GET", "/ui/api/state"): STATE,
    ("POST", "/ui/api/relay"): RELAY,
    ("GET", "/api/history"): HISTORY,
    ("GET", "/ui/api/history"): HISTORY,
    ("GET", "/api/guards"): GUARDS,
    ("GET", "/ui/api/guards"): GUARDS,
    ("GET", "/api/mcp"): MCP,
    ("GET", "/ui/api/mcp"): MCP,
    ("GET", "/api/runtime"): Operation("diagnosis", "Which build this is", found("Runtime", "version and commit")),
    ("POST", "/api/cel"): CEL,
    ("POST", "/cel"): CEL,
    ("GET", "/api/config"): Operation(
        "configuration",
        "The configuration file as JSON, without secrets",
        found("Configuration", "the file") | reasons(s500="it cannot be read"),
    ),
    ("GET", "/api/config/schema"): Operation(
        "configuration", "The JSON schema of the configuration file", found("Schema", "draft 2020-12")
    ),
    ("POST", "/api/config"): Operation(
        "configuration",
        "Write the configuration file from a document; comments of the file are lost",
        found("Written", "written")
        | reasons(
            s400="nested too deeply",
            s403="the configuration is read-only",
            s409="the file was changed in the meantime",
            s428="it would drop all routes: say ?confirm=empty",
            s500="no JSON, or the document has faults, one a line",
        ),
        (IF_MATCH, Parameter("confirm", "`empty`: a document without routes is meant")),
        named("Configuration"),
    ),
    ("GET", "/api/config/effective"): Operation(
        "configuration",
        "The file with what is stored in the database",
        found("Configuration", "the configuration") | reasons(s500="it cannot be read"),
    ),
    ("GET", "/api/config/text"): Operation(
        "configuration",
        "The configuration file as it is, without secrets",
        found("ShownText", "the text and its revision") | reasons(s500="it cannot be read"),
    ),
    ("POST", "/api/config/text"): Operation(
        "configuration",
        "Write the configuration file",
        found("Written", "written")
        | {422: Answer("faults, by line", named("Faults"))}
        | reasons(
            s400="the body is not what is expected",
            s403="the configuration is read-only",
            s409="the file was changed in the meantime",
            s428="it would drop all routes: say ?confirm=empty",
            s500="it cannot be written",
        ),
        (Parameter("confirm", "`empty`: a text without routes is meant"),),
        named("ConfigurationText"),
    ),
    ("POST", "/api/config/check"): Operation(
        "configuration",
        "Check a text, and write nothing",
        found("Checked", "faults and warnings")
        | reasons(s400="the body is not what is expected", s500="there is no file"),
        body=named("ConfigurationText"),
    ),
    ("GET", "/api/config/resources"): Operation(
        "resources",
        "All resources: of the file, and stored ones",
        found("Resources", "the resources") | reasons(s500="they cannot be read"),
    ),
    ("GET", "/api/config/resources/{kind}"): Operation(
        "resources",
        "All resources of a kind",
        found("Resources", "the resources") | reasons(s404="there is no such kind", s500="they cannot be read"),
    ),
    ("GET", "/api/config/resources/{kind}/{id}"): Operation(
        "resources",
        "One resource",
        found("Resource", "the resource; `etag` is its revision")
        | reasons(s404="there is none", s500="it cannot be read"),
    ),
    ("PUT", "/api/config/resources/{kind}"): Operation(
        "resources",
        "Write several, all or none",
        found("WrittenResources", "in force in all workers")
        | {**STORED, 403: Answer("the configuration is read-only", named("Reason"))},
        body=named("ResourceItems"),
    ),
    ("PUT", "/api/config/resources/{kind}/{id}"): Operation(
        "resources",
        "Write one",
        found("WrittenResources", "in force in all workers")
        | {**STORED, 403: Answer("the configuration is read-only", named("Reason"))},
        (IF_MATCH, Parameter("if-none-match", "`*`: there must be none yet", TEXT, "header")),
        named("ResourceItem"),
    ),
    ("DELETE", "/api/config/resources/{kind}/{id}"): Operation(
        "resources",
        "Delete one",
        found("Done", "in force in all workers")
        | {**STORED, 403: Answer("the configuration is read-only", named("Reason"))},
        (IF_MATCH,),
    ),
    ("GET", "/api/keys"): Operation(
        "keys", "All virtual keys", found("Keys", "without the keys themselves") | reasons(s500="the database")
    ),
    ("GET", "/api/keys/{name}"): Operation(
        "keys",
        "One key and what it has used",
        found("UsedKey", "the key") | reasons(s404="there is none", s500="the database"),
    ),
    ("POST", "/api/keys"): Operation(
        "keys", "Make a key", found("MadeKey", "made", 201) | KEY_FAULTS, body={"type": "object", "required": ["name"]}
    ),
    ("POST", "/api/keys/{name}/rotate"): Operation(
        "keys",
        "A new key in the place of the old one",
        found("MadeKey", "the old one is refused from now on") | KEY_FAULTS,
    ),
    ("POST", "/api/keys/{name}/revoke"): Operation(
        "keys", "Revoke a key for good", found("Key", "refused from now on") | KEY_FAULTS
    ),
    ("PUT", "/api/keys/{name}"): Operation(
        "keys", "Replace what is said of a key", found("Key", "the key") | KEY_FAULTS, body={"type": "object"}
    ),
    ("DELETE", "/api/keys/{name}"): Operation("keys", "Delete a key", found("Done", "deleted") | KEY_FAULTS),
    ("GET", "/api/teams"): Operation("keys", "All teams", found("Teams", "the teams") | reasons(s500="the database")),
    ("GET", "/api/teams/{name}"): Operation(
        "keys",
        "One team and what it has used",
        found("UsedTeam", "the team") | reasons(s404="there is none", s500="the database"),
    ),
    ("PUT", "/api/teams/{name}"): Operation(
        "keys", "Write a team", found("Team", "the team") | KEY_FAULTS, body={"type": "object"}
    ),
    ("DELETE", "/api/teams/{name}"): Operation("keys", "Delete a team", found("Done", "deleted") | KEY_FAULTS),
    ("GET", "/api/spend"): Operation(
        "keys",
        "What virtual keys have spent",
        {
            200: Answer("the sums, at most 10,000 rows; CSV with `format=csv`", named("Spend")),
            **reasons(s400="a day or a column that there is not", s500="the ledger cannot be read"),
        },
        (
            Parameter("from", "the first day", {"type": "string", "format": "date"}),
            Parameter("to", "the last day", {"type": "string", "format": "date"}),
            Parameter("by", "a list of day, key, team, model"),
            Parameter("format", "`csv`", {"enum": ["csv"]}),
        ),
    ),
    ("POST", "/api/logs/search"): Operation(
        "requests", "Search the request log", {200: Answer("entries", {"type": "object"}), **LOG_FAULTS}, body=QUESTION
    ),
    ("POST", "/api/logs/get"): Operation(
        "requests",
        "One entry of the request log",
        {200: Answer("the entry", {"type": "object"}), **LOG_FAULTS, 404: Answer("there is none", named("Reason"))},
        body=QUESTION,
    ),
    ("POST", "/api/logs/tail"): Operation(
        "requests",
        "Entries as they are made",
        {
            200: Answer("events `log`, `heartbeat`, `error`", None, EVENTS),
            **LOG_FAULTS,
            503: Answer("too many tails are open", named("Reason")),
        },
        body=QUESTION,
    ),
    ("POST", "/api/logs/analytics/summary"): Operation(
        "requests", "Sums of the request log", {200: Answer("sums", {"type": "object"}), **LOG_FAULTS}, body=QUESTION
    ),
    ("GET", "/api/costs/models"): Operation(
        "prices", "Prices of models in force", found("Prices", "dollars per million tokens")
    ),
    ("POST", "/api/costs/refresh-base"): Operation(
        "prices",
        "Fetch prices into the base file of `config.modelCatalog`",
        found("Refreshed", "written")
        | reasons(
            s403="the configuration is read-only",
            s404="there is no base file",
            s500="it cannot be written",
            s502="they cannot be fetched",
        ),
    ),
    ("GET", "/config_dump"): Operation(
        "diagnosis", "The running configuration with its state", found("Dump", "without secrets")
    ),
    ("GET", "/config_dump/same"): Operation(
        "diagnosis",
        "Whether the running configuration is one that you have read, which is not sent (`headgate --diff`)",
        found("Same", "whether it is") | words(s400="the proof cannot be read"),
        (Parameter("proof", "a salted digest of the configuration"),),
    ),
    ("GET", "/logging"): Operation(
        "diagnosis", "The level of the log", words(s200="the level", s405="use POST to change it")
    ),
    ("POST", "/logging"): Operation(
        "diagnosis",
        "Change the level of the log",
        words(s200="the level", s400="no such level"),
        (
            Parameter("level", "a level, or a list of `target=level`"),
            Parameter("reset", "back to the levels at the start"),
        ),
    ),
    ("GET", "/debug/pprof/heap"): Operation(
        "diagnosis", "A heap profile (gzipped protobuf of pprof)", {200: Answer("the profile", None, PROFILE)}
    ),
    ("POST", "/debug/pprof/heap"): Operation(
        "diagnosis",
        "Sample allocations, or stop that",
        words(s200="what happens now", s400="no such rate"),
        (Parameter("rate", "bytes between two samples; 0 stops", INTEGER),),
    ),
    ("GET", "/debug/pprof/profile"): Operation(
        "diagnosis",
        "A CPU profile of all processes (protobuf of pprof, not compressed)",
        {200: Answer("the profile", None, PROFILE), **words(s500="it cannot be made")},
        (
            Parameter("seconds", "1 to 300; 10", INTEGER),
            Parameter("frequency", "samples a second; 1 to 1000; 100", INTEGER),
        ),
    ),
    ("GET", "/debug/tasks"): Operation(
        "diagnosis", "Tasks that run in each process", found("Tasks", "their names by process")
    ),
    ("POST", "/debug/trace"): TRACE,
    ("GET", "/debug/trace"): TRACE,
    ("GET", "/memory"): Operation("diagnosis", "Memory of all processes", found("Memory", "as far as it is known")),
    ("POST", "/quitquitquit"): Operation(
        "process", "End the gateway as SIGTERM does: it drains", words(s200="it ends")
    ),
    ("POST", "/upgrade"): Operation(
        "process",
        "Let the version that is installed now take the place of this one",
        found("Upgraded", "the new process serves, this one drains") | words(s409="why it goes on as it was"),
    ),
}


def path_parameters(path: str) -> list[dict[str, Any]]:
    """Return the parameters that a path has in braces."""
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    return [{"name": name, "in": "path", "required": True, "schema": TEXT} for name in names]
