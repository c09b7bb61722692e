"""`gwctl keys`: virtual keys and their teams."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode

import click

from headgate.cli.admin_client import ANSWER_SECONDS, connect, unexpected, unreachable
from headgate.cli.named_values import named_values
from headgate.cli.target import admin_port_option
from headgate.cli.text_table import show_table

JSON_FIELDS: Final = {"content-type": "application/json"}
UNITS: Final = ("requests", "tokens", "dollars")
WINDOWS: Final = ("minute", "day", "month")
DAYS_A_YEAR: Final = 365
NONE: Final = "-"
HEADS: Final = ("NAME", "TEAM", "OWNER", "STATE", "EXPIRES", "LIMITS")


def call(port: int, method: str, path: str, document: Any = None) -> Any:
    """Return the JSON answer of the admin server. Raises ClickException with its text for any other status."""
    body = None if method == "GET" else json.dumps(document if document is not None else {})
    connection = connect(port, ANSWER_SECONDS)
    try:
        connection.request(method, path, body, JSON_FIELDS if body is not None else {})
        answer = connection.getresponse()
        status, raw = answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise unreachable(port, error) from None
    finally:
        connection.close()
    try:
        found = json.loads(raw)
    except ValueError:
        raise unexpected(status, raw) from None
    if status not in (200, 201):
        raise click.ClickException(found if isinstance(found, str) else json.dumps(found))
    return found


def limit(text: str) -> dict[str, Any]:
    """Return the limit of `UNIT=AMOUNT/WINDOW`, perhaps with `@PERCENT` behind it. Raises BadParameter."""
    amount, _, percent = text.partition("@")
    unit, equals, rest = amount.partition("=")
    most, slash, window = rest.partition("/")
    if not (equals and slash) or unit not in UNITS or window not in WINDOWS:
        examples = "dollars=25/month, tokens=1000000/day or requests=60/minute@80"
        raise click.BadParameter(f"{text!r} does not look like {examples}")
    if unit != "dollars" and not most.isdecimal():
        raise click.BadParameter(f"{text!r}: {unit} must be a whole number")
    found: dict[str, Any] = {unit: most if unit == "dollars" else int(most), "per": window}
    if percent:
        if not percent.isdecimal():
            raise click.BadParameter(f"{text!r}: expected a percentage after @")
        found["warnAtPercent"] = int(percent)
    return found


def limits(_ctx: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the limits of an option."""
    return [limit(text) for text in given]


def moment(_ctx: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    """Return the time of an option: a number of days from now as `30d`, or a time of RFC 3339."""
    if text is None or not text.endswith("d") or not text[:-1].isdecimal():
        return text
    if int(text[:-1]) > 100 * DAYS_A_YEAR:
        raise click.BadParameter("that is more than a hundred years")
    return (datetime.now(UTC) + timedelta(days=int(text[:-1]))).strftime("%Y-%m-%dT%H:%M:%SZ")


def allowed_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what a key or a team may use."""
    for name, what in (("route", "Route"), ("tool", "MCP tool"), ("model", "Model, as a pattern,")):
        command = click.option(
            f"--{name}", f"{name}s", multiple=True, metavar=name.upper(),
            help=f"{what} that may be used; may be repeated  [default: all].",
        )(command)  # fmt: skip
    return command


def limit_option(name: str, what: str) -> Callable[..., Any]:
    """Add limits as an option."""
    return click.option(
        name, multiple=True, callback=limits, metavar="UNIT=N/WINDOW[@PERCENT]",
        help=f"{what}, such as dollars=25/month@80; may be repeated.",
    )  # fmt: skip


def _allowed(given: dict[str, Any]) -> dict[str, Any]:
    names = {"models": "allowedModels", "tools": "allowedTools", "routes": "allowedRoutes"}
    return {field: list(given[name]) for name, field in names.items() if given[name]}


def _place(name: str, action: str = "", root: str = "/api/keys") -> str:
    return "/".join(part for part in (root, quote(name, safe=""), action) if part)


def _told(found: dict[str, Any]) -> None:
    click.echo(found["key"])
    click.echo("This is the only time that the key is shown.", err=True)


@click.group("keys")
def keys() -> None:
    """Make, list, rotate and revoke virtual keys.

    \b
    Examples:
      gwctl keys create ci --team research --limit dollars=25/month@80 --model 'gpt-4o*'
      gwctl keys list
      gwctl keys spend --by team,model
      gwctl keys revoke ci
      gwctl keys team research --limit dollars=500/month
    """


@keys.command("create")
@click.argument("name")
@click.option("--owner", metavar="TEXT", help="Holder of the key.")
@click.option("--team", metavar="NAME", help="Team, from which the key inherits what is not set here.")
@click.option("--tag", "tag", multiple=True, callback=named_values, metavar="NAME=VALUE", help="Tag; may be repeated.")
@click.option("--expires", callback=moment, metavar="TIME", help="Such as 2027-01-31T00:00:00Z, or 30d from now.")
@limit_option("--limit", "Limit of the key")
@allowed_options
@admin_port_option("--proxy-admin-port")
def create(name: str, admin_port: int, **given: Any) -> None:
    """Make a key and print it, once."""
    document: dict[str, Any] = {"name": name, **_allowed(given)}
    document |= {field: given[field] for field in ("owner", "team", "expires") if given[field] is not None}
    document |= {"tags": given["tag"]} if given["tag"] else {}
    document |= {"limits": given["limit"]} if given["limit"] else {}
    _told(call(admin_port, "POST", "/api/keys", document))


@keys.command("list")
@click.option("-o", "--output", type=click.Choice(("table", "json")), default="table", show_default=True)
@admin_port_option("--proxy-admin-port")
def listed(admin_port: int, output: str) -> None:
    """List the keys, without the keys themselves."""
    found = call(admin_port, "GET", "/api/keys")
    if output == "json":
        click.echo(json.dumps(found, indent=2))
        return
    teams = {one["name"]: one for one in call(admin_port, "GET", "/api/teams")["teams"]}
    show_table(HEADS, [_row(one, teams.get(one.get("team"), {})) for one in found["keys"]], ("OWNER", "EXPIRES"))


@keys.command("spend")
@click.option(
    "--by", default="key,model", show_default=True, metavar="LIST",
    help="Columns to group by, of day, key, team and model.",
)
@click.option("--from", "first", metavar="DAY", help="First day, such as 2027-01-01  [default: of this month].")
@click.option("--to", "last", metavar="DAY", help="Last day  [default: today].")
@click.option("-o", "--output", type=click.Choice(("table", "json")), default="table", show_default=True)
@admin_port_option("--proxy-admin-port")
def spend(by: str, first: str | None, last: str | None, output: str, admin_port: int) -> None:
    """Show who has spent what, from the ledger.

    \b
    Examples:
      gwctl keys spend
      gwctl keys spend --by team,day --from 2027-01-01 --to 2027-01-31
    """
    asked = {name: value for name, value in (("by", by), ("from", first), ("to", last)) if value is not None}
    found = call(admin_port, "GET", f"/api/spend?{urlencode(asked)}")
    if output == "json":
        click.echo(json.dumps(found, indent=2))
        return
    columns = [name.strip() for name in by.split(",")]
    heads = (*(name.upper() for name in columns), "REQUESTS", "CALLS", "INPUT", "OUTPUT", "COST")
    shown = (*columns, "requests", "calls", "inputTokens", "outputTokens")
    show_table(heads, [(*(str(one[name]) or NONE for name in shown), money(one["cost"])) for one in found["rows"]])
    if found["more"]:
        click.echo("There are more rows: choose fewer days or columns.", err=True)


def money(dollars: str) -> str:
    """Return an amount of the ledger to its last digit, without zeros behind it."""
    return f"${dollars.rstrip('0').rstrip('.') if '.' in dollars else dollars}"


def _limits(holder: dict[str, Any], field: str) -> list[str]:
    return [
        f"{entry[unit]} {unit}/{entry['per']}" for entry in holder.get(field) or () for unit in UNITS if unit in entry
    ]


def _row(one: dict[str, Any], team: dict[str, Any]) -> tuple[str, ...]:
    # What a key does not say itself its team says for each key; limits of the team hold beside both.
    shown = _limits(one, "limits") or [f"{limit} (from the team)" for limit in _limits(team, "keyLimits")]
    shown += [f"{limit} (whole team)" for limit in _limits(team, "limits")]
    state = "revoked" if one.get("revoked") else "file" if one.get("owned") == "file" else "active"
    told = (one.get("team"), one.get("owner"), state, one.get("expires"), ", ".join(shown))
    return one["name"], *(str(cell or NONE) for cell in told)


@keys.command("rotate")
@click.argument("name")
@admin_port_option("--proxy-admin-port")
def rotate(name: str, admin_port: int) -> None:
    """Replace a key by a new one, which is printed once. The old one is refused from then on."""
    _told(call(admin_port, "POST", _place(name, "rotate")))


@keys.command("revoke")
@click.argument("name")
@admin_port_option("--proxy-admin-port")
def revoke(name: str, admin_port: int) -> None:
    """Revoke a key: all workers refuse it when the command returns."""
    call(admin_port, "POST", _place(name, "revoke"))
    click.echo(f"{name} is revoked")


@keys.command("delete")
@click.argument("name")
@admin_port_option("--proxy-admin-port")
def delete(name: str, admin_port: int) -> None:
    """Delete a key. What it has spent stays in the ledger."""
    call(admin_port, "DELETE", _place(name))
    click.echo(f"{name} is deleted")


@keys.command("team")
@click.argument("name")
@limit_option("--limit", "Limit of all keys of the team together")
@limit_option("--key-limit", "Limit of each key without its own limits")
@allowed_options
@admin_port_option("--proxy-admin-port")
def team(name: str, admin_port: int, **given: Any) -> None:
    """Write a team: what is not said here is not limited."""
    document = {"limits": given["limit"], "keyLimits": given["key_limit"], **_allowed(given)}
    call(admin_port, "PUT", _place(name, root="/api/teams"), document)
    click.echo(f"team {name} is written")
