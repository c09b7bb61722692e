"""`gwctl requests`: the request log of a gateway, as it grows."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click

from headgate.cli.admin_client import ANSWER_SECONDS, connect, unexpected, unreachable
from headgate.cli.cluster_target import admin_port
from headgate.cli.named_values import named_values
from headgate.cli.proxy_config import LOCAL
from headgate.cli.target import admin_port_option, local_option, namespace_option
from headgate.cli.text_table import padded, printable, shortened, terminal_width
from headgate.cli.traffic_rows import NONE, dollars, took

Json = dict[str, Any]
# The server sends a heartbeat every 15 s.
SILENCE_SECONDS: Final = 60.0
MOST: Final = 500
STATUS: Final = re.compile(r"[1-5]xx|[0-9]{1,3}")
AGE: Final = re.compile(r"([0-9]{1,6})([smhd])")
NO_LOG: Final = (
    ": requests are listed from it. Set config.database.url (sqlite:///var/lib/headgate/requests.db, say) and start "
    "the gateway again, or watch requests without it: gwctl proxy trace"
)
SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
WIDTHS: Final = (19, 6, 9, 44, 22, 24, 13)
HEADS: Final = ("TIME", "STATUS", "TOOK", "REQUEST", "ROUTE", "MODEL", "TOKENS", "COST")
# A terminal that is narrower than this shows records by these columns, each on a line.
WIDE: Final = 150
NARROW_HEADS: Final = ("TIME", "STATUS", "TOOK", "REQUEST", "ROUTE", "DETAILS")
# Columns of the first three, and the shares that the request and the route have of the rest.
NARROW_FIXED, NARROW_SHARES = (8, 6, 7), (0.4, 0.25)


def statuses(_ctx: click.Context, _parameter: click.Parameter, text: str | None) -> list[int | str]:
    """Return the statuses of an option: numbers, and classes such as 5xx. Raises BadParameter."""
    found: list[int | str] = []
    for word in (text or "").lower().split(",") if text else ():
        if not STATUS.fullmatch(word.strip()):
            raise click.BadParameter(f"{word!r} is neither a status nor a class of them such as 5xx")
        found.append(int(word) if word.strip().isdecimal() else word.strip())
    return found


def since(_ctx: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    """Return the time of an option such as 15m, or a time of RFC 3339 as it is. Raises BadParameter."""
    if text is None or "T" in text:
        return text
    found = AGE.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is neither a duration such as 15m, 2h or 1d, nor an RFC 3339 time")
    return (datetime.now(UTC) - timedelta(seconds=int(found[1]) * SECONDS[found[2]])).strftime("%Y-%m-%dT%H:%M:%SZ")


def filters(options: Mapping[str, Any]) -> Json:
    """Return the filters that options say."""
    found: Json = {}
    if options["status"]:
        found["httpStatus"] = options["status"]
    for option, name in (("provider", "provider"), ("model", "requestModel")):
        if options[option]:
            found[name] = list(options[option])
    if options["trace_id"]:
        found["traceId"] = options["trace_id"]
    wanted = dict(options["attribute"])
    if options["route"]:
        wanted["route"] = options["route"]
    return found | ({"attributes": wanted} if wanted else {})


@contextlib.contextmanager
def asked(port: int, path: str, question: Json, seconds: float) -> Iterator[http.client.HTTPResponse]:
    """Yield the answer of the request log; raises ClickException for any status but 200."""
    connection = connect(port, seconds)
    try:
        connection.request("POST", path, json.dumps(question), {"content-type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            raw = answer.read()
            with contextlib.suppress(ValueError):
                told = json.loads(raw)
                if isinstance(told, str):
                    raise click.ClickException(told + (NO_LOG if "not configured" in told else ""))
            raise unexpected(answer.status, raw)
        yield answer
    except (OSError, http.client.HTTPException) as error:
        raise unreachable(port, error) from None
    finally:
        connection.close()


def earlier(port: int, options: Mapping[str, Any]) -> list[Json]:
    """Return the newest records, the oldest of them first."""
    question: Json = {"limit": max(options["lines"], 1), "filters": filters(options), "includeAttributes": True}
    if options["since"]:
        question["timeRange"] = {"from": options["since"]}
    with asked(port, "/api/logs/search", question, ANSWER_SECONDS) as answer:
        logs = json.load(answer)["logs"]
    return list(reversed(logs))


def later(port: int, options: Mapping[str, Any], last: Json | None) -> Iterator[Json]:
    """Yield records as they come, from behind `last` on."""
    question: Json = {"filters": filters(options), "includeAttributes": True}
    if last is not None:
        question["cursor"] = f"{last['completedAt']}|{last['id']}"
    with asked(port, "/api/logs/tail", question, SILENCE_SECONDS) as answer:
        for kind, data in sent(iter(answer.readline, b"")):
            if kind == "error":
                raise click.ClickException(data["message"])
            if kind == "log":
                yield data["entry"]
    raise click.ClickException("the gateway has ended the stream")


def sent(lines: Iterator[bytes]) -> Iterator[tuple[str, Any]]:
    """Yield kind and data of server-sent events."""
    kind = ""
    for line in lines:
        name, _, value = line.decode(errors="replace").rstrip("\r\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield kind, json.loads(value)


def request_of(own: Mapping[str, Any]) -> str:
    """Return what the attributes of a record say was asked: method, path, and what was called of an MCP server."""
    names = ("http.method", "http.path", "mcp.method.name", "mcp.tool.name", "mcp.prompt.name", "mcp.resource.uri")
    return " ".join(str(own[name]) for name in names if own.get(name)) or NONE


def error_of(one: Mapping[str, Any]) -> str:
    """Return what went wrong in a request; empty if nothing did."""
    own = one.get("attributes") or {}
    return str(one.get("error") or own.get("mcp.error.message") or own.get("reason") or "")


def shown(one: Json, most: int | None = None) -> str:
    """Return a record as a line. A cell that is too long moves the rest, and nothing is cut that somebody looks for,
    unless the line is for a terminal of `most` columns that is too narrow for that.
    """
    own = one.get("attributes") or {}
    models, usage = one.get("genAi") or {}, one.get("usage") or {}
    tokens = f"{usage.get('inputTokens') or 0}+{usage.get('outputTokens') or 0}" if usage else NONE
    when = datetime.fromisoformat(one["completedAt"]).astimezone()
    model = str(models.get("requestModel") or models.get("responseModel") or NONE)
    cost, error = dollars(one.get("cost")), error_of(one)
    first = str(one["httpStatus"] or "none"), took(one["durationMs"]), request_of(own), str(own.get("route") or NONE)
    if most is not None and most < WIDE:
        details = error or " ".join(cell for cell in (model, tokens, cost) if cell != NONE) or NONE
        return narrow((when.strftime("%H:%M:%S"), *first, details), most)
    cells = when.strftime("%Y-%m-%d %H:%M:%S"), *first, model, tokens
    line = " ".join(map(padded, map(printable, cells), WIDTHS)) + " " + cost
    return line.rstrip() + (f"  {printable(error)}" if error else "")


def narrow(cells: tuple[str, ...], most: int) -> str:
    """Return a line of at most `most` columns."""
    left = max(most - sum(NARROW_FIXED) - len(NARROW_HEADS) + 1, 0)
    shared = [int(left * share) for share in NARROW_SHARES]
    widths = (*NARROW_FIXED, *shared, left - sum(shared))
    return " ".join(map(padded, map(shortened, map(printable, cells), widths), widths)).rstrip()


@click.command("requests")
@click.argument("resource", required=False)
@namespace_option
@local_option
@admin_port_option("--proxy-admin-port")
@click.option("--status", callback=statuses, metavar="LIST", help="Statuses or classes of them, such as 404,5xx.")
@click.option("--route", metavar="NAME", help="Route, such as default/shop.")
@click.option("--model", multiple=True, metavar="NAME", help="Requested model; may be repeated.")
@click.option("--provider", multiple=True, metavar="NAME", help="Provider of the model; may be repeated.")
@click.option("--trace-id", metavar="HEX", help="Trace that a request belongs to.")
@click.option(
    "--attribute", multiple=True, callback=named_values, metavar="NAME=VALUE", help="Attribute of the record, such as "
    "user.id=ada or mcp.tool.name=echo; may be repeated.",
)  # fmt: skip
@click.option(
    "--since", callback=since, metavar="TIME", help="Begin with requests from this time on: 15m, 2h, 1d, or RFC 3339."
)
@click.option(
    "-l", "--lines", type=click.IntRange(0, MOST), default=10, show_default=True,
    help="Begin with this many earlier requests.",
)
@click.option(
    "--follow/--no-follow", default=True, show_default=True, help="Continue with new requests as they arrive."
)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def requests(resource: str | None, **options: Any) -> None:
    """Show requests as they end, from the request log (config.database).

    \b
    Examples:
      gwctl requests --local --status 5xx
      gwctl requests --local --route default/shop --since 15m -l 100 --no-follow
      gwctl requests --local --model gpt-4o --attribute user.id=ada -o json
    """
    with admin_port(resource, options["namespace"], options["local"], options["admin_port"], LOCAL) as port:
        # Asked even where none is wanted: what comes is what comes behind the newest.
        before = earlier(port, {**options, "status": [], "route": None, "model": (), "provider": (), "trace_id": None,
                                "attribute": {}, "since": None, "lines": 1})  # fmt: skip
        listed = earlier(port, options) if options["lines"] else []
        if options["output"] == "table":
            most = terminal_width()
            wide = " ".join(map(str.ljust, HEADS, (*WIDTHS, 0))).rstrip()
            click.echo(narrow(NARROW_HEADS, most) if most is not None and most < WIDE else wide)
        newest = max((*before, *listed), key=lambda one: int(one["id"]), default=None)
        for one in listed:
            _print(one, options["output"])
        if options["follow"]:
            for one in later(port, options, newest):
                _print(one, options["output"])


def _print(one: Json, output: str) -> None:
    # The terminal is asked each time: it may have another size by now.
    click.echo(json.dumps(one, ensure_ascii=False) if output == "json" else shown(one, terminal_width()))
