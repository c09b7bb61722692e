"""`headgate`: run a gateway from one configuration file."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # imported only when needed: `--version` stays quick
    from headgate.config.load import FileSource, TextSource
    from headgate.server.delivery import Feed

# The options of headgate.cli.options as they are where none is given.
NOT_GIVEN: Final[dict[str, Any]] = {
    "file": None, "config": None, "validate_only": False, "diff": None, "short_version": False, "version": False,
    "action": None, "output": None,
}  # fmt: skip
# Words that begin programs of their own, with arguments of their own, by the module that has `run(arguments)`.
PROGRAMS: Final = {"bench": "bench", "controller": "controller", "convert": "convert", "import": "import_command"}
STARTER = """\
# Made by headgate on its first start. https://json-schema.org: docs/schema/config.schema.json describes this file.
config:
  database:
    url: {url}
gateways:
  default:
    port: 4000
routes:
- name: hello
  policies:
    directResponse:
      status: 200
      body: "headgate runs; edit this file and it is reloaded\\n"
"""


def options_of(words: Sequence[str]) -> Any:
    """Return the options that the arguments say; exits with a message if they are wrong.

    What services start with is read here: to load argparse and to make a parser takes a twentieth of such a start.
    """
    if len(words) == 2 and words[0] in ("-f", "--file") and (words[1] == "-" or words[1][:1] not in ("", "-")):
        return SimpleNamespace(**{**NOT_GIVEN, "file": words[1]})
    from headgate.cli.options import parser

    return parser().parse_args(words)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    hold_standard_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] in PROGRAMS:
        return int(import_module(f"headgate.cli.{PROGRAMS[words[0]]}").run(words[1:]))
    end = words.index("--") if "--" in words else len(words)
    options = options_of(words[:end])
    if (options.action is None) != (end == len(words)) or (options.output is not None and options.action is None):
        print("headgate: oneshot, --output and a command after -- belong together", file=sys.stderr)
        return 2
    if options.short_version or options.version:
        return _print_version(options.version)
    if options.file is not None and options.config is not None:
        print("headgate: only one of --config or --file may be given", file=sys.stderr)
        return 2
    if options.action is not None:
        from headgate.cli import oneshot

        given = (("-f", options.file), ("-c", options.config))
        own = [word for flag, value in given if value is not None for word in (flag, value)]
        return oneshot.run(own, words[end + 1 :], options.output)
    from headgate.config.load import FileSource, Source, TextSource

    source: Source
    if options.config is not None:
        source = TextSource(options.config)
    elif options.file is not None:
        source = FileSource(options.file)
    elif options.diff is not None:
        print("headgate: --diff needs a configuration: pass --config or --file", file=sys.stderr)
        return 2
    elif options.validate_only:
        print("No local configuration\nConfiguration is valid!")
        return 0
    else:
        try:
            source = FileSource(default_file())
        except OSError as error:
            print(f"headgate: {error}", file=sys.stderr)
            return 1
    if options.diff is not None:
        from headgate.cli import difference

        return difference.run(source, options.diff)
    if options.validate_only:
        return _validate(source)
    return _serve(source)


def _serve(source: FileSource | TextSource) -> int:
    gc.disable()  # imports create no garbage
    from headgate.server.ending import leave
    from headgate.server.start import serve

    try:
        feed = _delivery_feed()
    except ValueError as error:
        print(f"headgate: {error}", file=sys.stderr)
        return 1
    outcome = serve(source, feed)
    if isinstance(outcome, int):
        leave(outcome)
    # This is a worker. Its loop runs here because a CPU profile reads every frame of the stack in each sample.
    with outcome.runner:
        outcome.runner.get_loop().run_forever()
        outcome.task.result()
    leave(0)


def _delivery_feed() -> Feed | None:
    """Return what brings the configuration from a controller, where the environment names one. Raises ValueError."""
    if not os.environ.get("XDS_ADDRESS"):
        return None
    try:
        from headgate.cluster.deliver.data_plane import DeliveryClient, DeliveryEnvironment
    except ImportError as error:
        raise ValueError(f"XDS_ADDRESS needs the extra envoy: {error}") from None
    return DeliveryClient(DeliveryEnvironment.read(os.environ))


def hold_standard_streams() -> None:
    """Open /dev/null for closed standard streams: otherwise the next file opened would get one of their numbers."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest free number
        if getattr(sys, name) is None:
            stream = open(number, mode, closefd=False, encoding="utf-8")  # noqa: SIM115 (for the whole process)
            setattr(sys, name, stream)


def _print_version(full: bool) -> int:
    from headgate.telemetry.build_info import build_info

    if full:
        print(json.dumps(build_info(), indent=2))
    else:
        print(build_info()["version"])
    return 0


def _validate(source: FileSource | TextSource) -> int:
    from headgate.config.load import load
    from headgate.errors import ConfigErrors

    try:
        loaded = load(source)
    except ConfigErrors as error:
        print(error, file=sys.stderr)
        return 1
    from headgate.server.dry_run import dry_run

    errors = dry_run(loaded.gateway)
    for line in errors:
        print(line, file=sys.stderr)
    if errors:
        return 1
    from headgate.config.guard_coverage import told

    for line in told(loaded.gateway):
        print(line)
    for warning in loaded.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print("Configuration is valid!")
    return 0


def default_file() -> str:
    """Return the file used without -f and -c, and create it on the first start. Raises OSError with advice."""
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        raise OSError("configuration is required when running in Kubernetes: pass --config or --file")
    shared = Path("/config")
    if shared.is_dir():
        if not os.access(shared, os.W_OK):
            raise OSError("/config is not writable: change that, or pass --file")
        path = shared / "config.yaml"
    else:
        base = os.environ.get("XDG_CONFIG_HOME")
        home = os.environ.get("HOME")
        if not base and not home:
            raise OSError("neither XDG_CONFIG_HOME nor HOME is set: pass --config or --file")
        path = (Path(base) if base else Path(str(home)) / ".config") / "headgate" / "config.yaml"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        url = json.dumps(f"sqlite://{path.parent / 'data.db'}".replace("$", "$$"))
        path.write_text(STARTER.replace("{url}", url))
        print(f"headgate: made {path}", file=sys.stderr)
    print(f"headgate: serves {path}; use -f for another file, -h for all options", file=sys.stderr)
    return str(path)


if __name__ == "__main__":
    sys.exit(main())
