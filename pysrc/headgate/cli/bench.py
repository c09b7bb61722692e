"""`headgate bench`: measure what a gateway carries on this machine."""

from __future__ import annotations

import json
import math
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from headgate.capacity.errors import BenchError
from headgate.capacity.report.comparison import compare as differences
from headgate.capacity.report.comparison import comparison_text
from headgate.capacity.report.document import read
from headgate.capacity.report.page import page
from headgate.capacity.report.text import ms, report_text
from headgate.capacity.workload import FORMATS, KINDS

if TYPE_CHECKING:  # forks and sockets are for `run` and `serve` alone
    from headgate.capacity.figures import StepFigures
    from headgate.capacity.measurement import MeasurementPlan
    from headgate.capacity.stand_ins.answers import Behaviour
    from headgate.capacity.step import Tick

# Something got worse.
WORSE: Final = 3
_SETTINGS: Final[dict[str, Any]] = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


class RateType(click.ParamType[float]):
    """Requests a second, or `max`: as fast as connections allow."""

    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if value == "max":
            return 0.0
        try:
            found = float(value)
        except ValueError:
            found = math.nan
        if not 0.001 <= found <= 10_000_000:
            self.fail("expected requests per second, from 0.001 to 10,000,000, or max", param, ctx)
        return found


class HeaderType(click.ParamType[tuple[str, str]]):
    """A header field as curl takes it."""

    name = "header"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        name, colon, text = str(value).partition(":")
        if not colon or not name.strip():
            self.fail("expected NAME: VALUE", param, ctx)
        return name.strip().lower(), text.strip()


def _behaviour(more: dict[str, Any]) -> Behaviour:
    from headgate.capacity.stand_ins.answers import Behaviour

    return Behaviour(more["size"], more["tokens"], more["delay"] / 1000, more["gap"] / 1000)


_PEER_OPTIONS: Final[tuple[tuple[str, click.ParamType[Any], int, str, str], ...]] = (
    ("--size", click.IntRange(0, 16 << 20), 1024, "BYTES", "Built-in backend: body of an HTTP answer."),
    ("--tokens", click.IntRange(1, 100_000), 50, "N", "Built-in provider: tokens of an answer."),
    ("--delay", click.FloatRange(0, 60_000), 0, "MS", "Built-in peers: time before an answer."),
    ("--gap", click.FloatRange(0, 60_000), 0, "MS", "Built-in provider: time between two tokens."),
)


def _peer_options(command: Any) -> Any:
    """Add the options of the built-in peers."""
    for name, kind, default, metavar, words in reversed(_PEER_OPTIONS):
        option = click.option(name, type=kind, default=default, show_default=True, metavar=metavar, help=words)
        command = option(command)
    return command


@click.group("bench", context_settings=_SETTINGS)
def command() -> None:
    """Measure what a gateway carries on this machine.

    `headgate bench [URL]` is short for `headgate bench run [URL]`. docs/capacity.md tells how to read the figures.

    \b
    Examples:
      headgate bench                                           # a gateway of our own, 100 requests a second
      headgate bench http://127.0.0.1:3000/ -r 2000 -t 30
      headgate bench --kind stream --saturate --html report.html
      headgate bench -f config.yaml http://127.0.0.1:4000/ --kind chat --model gpt-4o
      headgate bench compare before.json after.json
    """


@click.command("run")
@click.argument("url", required=False)
@click.option(
    "-k",
    "--kind",
    type=click.Choice(list(KINDS)),
    default="http",
    show_default=True,
    help="; ".join(f"{name}: {text}" for name, text in KINDS.items()) + ".",
)
@click.option(
    "-r",
    "--rate",
    type=RateType(),
    default="100",
    show_default=True,
    help="Requests a second, at fixed times whatever the target does; max: as fast as connections allow.",
)
@click.option(
    "--saturate",
    is_flag=True,
    help="Raise the rate step by step until errors or tail latency exceed a bound, and report the highest rate before.",
)
@click.option(
    "--max-errors",
    type=click.FloatRange(0, 100),
    default=1.0,
    show_default=True,
    metavar="PERCENT",
    help="With --saturate: the bound for errors.",
)
@click.option(
    "--max-p99",
    type=click.FloatRange(0.001),
    metavar="MS",
    help="With --saturate: the bound for the p99. Default: ten times that of the first step, at least 10 ms.",
)
@click.option(
    "-t",
    "--seconds",
    type=click.FloatRange(0.1, 86_400),
    default=10.0,
    show_default=True,
    metavar="S",
    help="Length of each step.",
)
@click.option(
    "--warm-up",
    type=click.FloatRange(0, 3600),
    default=2.0,
    show_default=True,
    metavar="S",
    help="Warm-up before each step. Its requests are not counted.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of runs. A comparison uses them to estimate the noise.",
)
@click.option(
    "-c",
    "--connections",
    type=click.IntRange(1, 100_000),
    default=32,
    show_default=True,
    metavar="N",
    help="Number of concurrent connections.",
)
@click.option("--http2", is_flag=True, help="HTTP/2: by ALPN, or with prior knowledge.")
@click.option(
    "--streams",
    type=click.IntRange(1, 10_000),
    default=32,
    show_default=True,
    metavar="N",
    help="Concurrent requests on an HTTP/2 connection.",
)
@click.option("--no-keepalive", is_flag=True, help="Open a new connection for each request (HTTP/1.1).")
@click.option(
    "--processes", type=click.IntRange(1, 256), default=1, show_default=True, metavar="N",
    help="Processes of the load generator.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.001, 86_400),
    default=30.0,
    show_default=True,
    metavar="S",
    help="Time after which a request is abandoned.",
)
@click.option("-X", "--method", metavar="NAME", help="Method of HTTP requests. Default: GET, or POST with a body.")
@click.option(
    "-H",
    "--header",
    "headers",
    type=HeaderType(),
    multiple=True,
    metavar="FIELD",
    help="Such as 'authorization: Bearer KEY'. May be repeated.",
)
@click.option("-d", "--body", metavar="TEXT", help="Body of each request; @PATH reads a file.")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    default="completions",
    show_default=True,
    help="API for the kinds chat and stream.",
)
@click.option(
    "--model", default="bench", show_default=True, metavar="NAME", help="Model for the kinds chat and stream."
)
@click.option(
    "--prompt-bytes",
    type=click.IntRange(1, 16 << 20),
    default=512,
    show_default=True,
    metavar="N",
    help="Length of the prompt for the kinds chat and stream.",
)
@click.option("--tool", metavar="NAME", help="Tool for the kind mcp. Default: the server's first one.")
@click.option("--arguments", metavar="JSON", help="Of the tool. Default: what its schema requires, by type.")
@click.option(
    "--pid",
    type=click.IntRange(1),
    metavar="PID",
    help="The process to observe. Default: the one that listens on the port, if it is on this machine.",
)
@click.option("--cacert", metavar="PATH", help="Trusted CA certificates (PEM). Default: those of the system.")
@click.option("--insecure", is_flag=True, help="Accept any certificate.")
@click.option(
    "-f", "--file", metavar="PATH", help="Start a gateway with this configuration for the length of the measurement."
)
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    metavar="N",
    help="Without a URL: number of workers of the started gateway.",
)
@click.option("--no-check", is_flag=True, help="Continue if the first request fails.")
@click.option(
    "--json", "json_path", metavar="PATH",
    help="Write the report as JSON; - writes it to standard output instead of the text.",
)
@click.option("--html", "html_path", metavar="PATH", help="Write the report as an HTML page with plots.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@_peer_options
def run_command(url: str | None, json_path: str | None, html_path: str | None, quiet: bool, **more: Any) -> int:
    """Send requests at a fixed rate and tell how long the answers took.

    Without URL, a gateway is started in front of built-in peers. Latency counts from when a request was due, so that a
    target that stands still shows in the percentiles. The status is 1 if nothing could be measured.
    """
    from headgate.capacity.measurement import Measurement

    progress = Progress(quiet)
    # As an interrupt: what was started is ended.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        document = Measurement(wanted_of(url, more), progress.tick, progress.step).run()
    finally:
        signal.signal(signal.SIGTERM, before)
    progress.clear()
    if json_path is not None and json_path != "-":
        _write(json_path, json.dumps(document, indent=1) + "\n")
    if html_path is not None:
        _write(html_path, page(document))
    click.echo(json.dumps(document, indent=1) if json_path == "-" else report_text(document), nl=json_path == "-")
    return 0


def wanted_of(url: str | None, more: dict[str, Any]) -> MeasurementPlan:
    """Return what the options ask for. Raises UsageError for what does not go together."""
    from headgate.capacity.measurement import MeasurementPlan
    from headgate.capacity.saturation import Bounds
    from headgate.capacity.step import LoadShape
    from headgate.capacity.transport import Trust

    _check(url, more)
    body = _body(more["body"])
    shape = LoadShape(
        more["connections"], more["streams"] if more["http2"] else 0, more["processes"], not more["no_keepalive"],
        more["timeout"], more["warm_up"], more["seconds"], min(more["timeout"], 5.0),
    )  # fmt: skip
    return MeasurementPlan(
        url=url, kind=more["kind"], rate=more["rate"], saturate=more["saturate"], repeat=more["repeat"], shape=shape,
        bounds=Bounds(more["max_errors"] / 100, more["max_p99"]),
        method=more["method"] or ("GET" if body is None else "POST"),
        fields=tuple(more["headers"]), body=body, form=more["form"], model=more["model"],
        prompt=("word " * (more["prompt_bytes"] // 5 + 1))[: more["prompt_bytes"]], tool=more["tool"],
        arguments=_arguments(more["arguments"]), pid=more["pid"], trust=Trust(more["cacert"], more["insecure"]),
        file=more["file"],
        workers=more["workers"], behaviour=_behaviour(more), check=not more["no_check"],
    )  # fmt: skip


def _check(url: str | None, more: dict[str, Any]) -> None:
    """Raise UsageError for options that do not go together."""
    rules = (
        (more["saturate"] and more["rate"] == 0, "--saturate needs a rate to start from, not max"),
        (more["saturate"] and more["repeat"] > 1, "--saturate and --repeat exclude each other"),
        (more["http2"] and more["no_keepalive"], "--no-keepalive is for HTTP/1.1"),
        (more["processes"] > more["connections"], "each of the --processes needs at least one connection"),
        (more["kind"] == "mcp" and more["body"] is not None, "--body is not for mcp: use --tool and --arguments"),
        (more["kind"] != "http" and more["method"] is not None, "--method is for http"),
        (url is None and more["pid"] is not None, "--pid is for a target of your own: give its URL"),
        (more["cacert"] is not None and more["insecure"], "--cacert and --insecure exclude each other"),
    )
    for broken, words in rules:
        if broken:
            raise click.UsageError(words)


def _body(text: str | None) -> bytes | None:
    if text is None or not text.startswith("@"):
        return None if text is None else text.encode()
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        raise BenchError(f"{text[1:]}: {error.strerror or error}") from None


def _arguments(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"--arguments: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise click.UsageError("--arguments: expected an object")
    return found


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text)
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror or error}") from None


class Progress:
    """How it goes on, on one line of a terminal, and a line for each step."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.live = not quiet and sys.stderr.isatty()

    def tick(self, tick: Tick) -> None:
        """Show a moment of a step."""
        if self.live:
            waiting = f", {tick.waiting:,} due and not sent" if tick.waiting > 1 else ""
            times = f"p50 {ms(tick.p50_ns / 1e6)}, p99 {ms(tick.p99_ns / 1e6)}"
            text = f"{tick.elapsed_s:6.1f} s  {tick.good:,} good, {tick.failed:,} failed, {times}{waiting}"
            click.echo(f"\r\x1b[K{text}", err=True, nl=False)

    def step(self, step: StepFigures) -> None:
        """Show the end of a step."""
        if not self.quiet:
            self.clear()
            asked = f"{step.rate:,.0f}/s" if step.rate else "max"
            p99 = ms(step.latency.percentile(99) / 1e6)
            click.echo(
                f"{asked}: {step.achieved:,.0f}/s answered, {step.failed:,} failed, p99 {p99}  {step.verdict}".rstrip(),
                err=True,
            )

    def clear(self) -> None:
        """Take the line away."""
        if self.live:
            click.echo("\r\x1b[K", err=True, nl=False)


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen.")
@click.option(
    "-p", "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="Port; 0 chooses a free one."
)
@click.option(
    "--processes", type=click.IntRange(1, 256), default=1, show_default=True, metavar="N",
    help="Number of processes on that port.",
)
@_peer_options
def serve_command(host: str, port: int, processes: int, **more: Any) -> int:
    """Serve as the backend of a gateway that is measured, until SIGINT or SIGTERM.

    \b
    One server is all of these, by path:
      /mcp                      an MCP server with the tool `echo`
      .../chat/completions      a provider of models (OpenAI's chat completions)
      .../responses             the same (OpenAI's responses)
      .../messages              the same (Anthropic's messages)
      anything else             an HTTP backend
    """
    from headgate.capacity.stand_ins.server import listening, serve

    listener = listening(host, port)
    click.echo(f"serving at http://{host}:{listener.getsockname()[1]}/", err=True)
    serve(listener, _behaviour(more), processes)
    return 0


@click.command("compare")
@click.argument("before", metavar="BEFORE.json")
@click.argument("after", metavar="AFTER.json")
def compare_command(before: str, after: str) -> int:
    """Tell what differs between two reports beyond noise.

    Noise is that of the repetitions of a rate (--repeat), or of the seconds of a run. The status is 3 if something
    is worse.
    """
    first, second = read(before), read(after)
    click.echo(comparison_text(first, second), nl=False)
    return WORSE if any(one.verdict == "worse" for one in differences(first, second)) else 0


for _one in (run_command, serve_command, compare_command):
    command.add_command(_one)


def run(words: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    arguments = list(words)
    if not arguments or arguments[0] not in (*command.commands, "-h", "--help"):
        arguments.insert(0, "run")
    try:
        return int(command.main(arguments, prog_name="headgate bench", standalone_mode=False) or 0)
    except BenchError as error:
        print(f"headgate bench: {error}", file=sys.stderr)
        return 1
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
