"""`headgate convert`: a configuration file as resources of a cluster, and back."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import click

from headgate.cluster.translate.fragments import Json

# Something cannot be converted, and --partial was not given.
LOST = 3
_SUFFIXES = (".yaml", ".yml", ".json")


class Wanted(NamedTuple):
    """The arguments of the command."""

    gateway: str
    namespace: str
    class_name: str
    output: str | None
    partial: bool


@click.command("convert", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@click.option("--to", "form", type=click.Choice(["resources", "file"]), help="Default: the opposite of the input.")
@click.option("-g", "--gateway", metavar="NAME", help="The Gateway, as name or namespace/name if there are several.")
@click.option(
    "-n", "--namespace", default="default", show_default=True, metavar="NAME",
    help="Namespace of resources without one.",
)
@click.option("--class", "class_name", default="headgate", show_default=True, metavar="NAME", help="GatewayClass.")
@click.option("-o", "--output", metavar="PATH", type=click.Path(), help="A folder, or a file for --to file.")
@click.option("--partial", is_flag=True, help="Write everything else even if something cannot be converted.")
def command(
    files: tuple[str, ...], form: str | None, gateway: str | None, namespace: str, class_name: str, **more: object
) -> int:
    """Write a configuration file as resources of a cluster, or resources as a file.

    \b
    Resources are Gateway, HTTPRoute, GRPCRoute, TLSRoute, TCPRoute, GatewayBackend,
    GatewayPolicy and GatewayParameters, with Secrets for credentials. The file's
    variables are expanded, and files that it names are read.

    The controller's translator checks the result: what would be different in the cluster
    is told with its path, line and reason, nothing is written, and the status is 3.
    docs/cluster-fields.md lists the fields that no resource has.

    \b
    Examples:
      headgate convert config.yaml | kubectl apply -f -
      headgate convert config.yaml -n shop -g web -o manifests/
      headgate convert manifests/ -g shop/web -o config.yaml
      headgate convert config.yaml --partial > resources.yaml
    """
    partial, output = bool(more["partial"]), more["output"]
    wanted = Wanted(gateway or "", namespace, class_name, str(output) if output is not None else None, partial)
    if form == "resources":
        return _to_resources(files, wanted)
    texts = _texts(files)
    if form is None:
        form = "file" if all(_is_manifest(text) for text in texts.values()) else "resources"
    return _to_file(texts, wanted) if form == "file" else _to_resources(files, wanted)


def _texts(files: tuple[str, ...]) -> dict[str, str]:
    """Return the texts of files and of those of folders, by name; raises ClickException."""
    found: dict[str, str] = {}
    try:
        for name in files:
            path = Path(name)
            inner = sorted(one for one in path.iterdir() if one.suffix in _SUFFIXES) if path.is_dir() else [path]
            for one in inner:
                found[str(one)] = sys.stdin.read() if str(one) == "-" else one.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise click.ClickException(f"cannot read {error.filename}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.ClickException("a file is not UTF-8") from None
    return found


def _is_manifest(text: str) -> bool:
    """Tell whether a text has objects of a cluster: each says its `apiVersion` and `kind`, which no file has."""
    lines = text.splitlines()
    keys = {line.partition(":")[0].strip(' "{,') for line in lines if line[:1] not in ("#", "-")}
    return {"apiVersion", "kind"} <= keys


def _to_resources(files: tuple[str, ...], wanted: Wanted) -> int:
    if len(files) != 1 or files[0] == "-" or Path(files[0]).is_dir():
        raise click.ClickException("expected one configuration file")
    from headgate.cluster.convert.file import to_resources
    from headgate.cluster.convert.gateway import GatewayNames
    from headgate.errors import ConfigErrors

    names = GatewayNames(wanted.gateway or "headgate", wanted.namespace, wanted.class_name)
    try:
        found = to_resources(files[0], names)
    except ConfigErrors as error:
        raise click.ClickException(str(error)) from None
    for one in found.losses:
        click.echo(f"not converted: {one.told(files[0])}", err=True)
    if found.losses and not wanted.partial:
        click.echo("nothing was written; --partial writes the rest", err=True)
        return LOST
    _write_resources(found.documents, wanted.output)
    return 0


def _write_resources(documents: list[Json], output: str | None) -> None:
    from headgate.document.write import write

    if output is None:
        click.echo("---\n".join(write(one) for one in documents), nl=False)
        return
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one in documents:
            metadata: Mapping[str, str] = one["metadata"]
            name = f"{one['kind'].lower()}-{metadata['namespace']}-{metadata['name']}.yaml"
            _write_private(folder / name, write(one))
    except OSError as error:
        raise click.ClickException(f"cannot write {output}: {error.strerror}") from None


def _to_file(texts: Mapping[str, str], wanted: Wanted) -> int:
    from headgate.cluster.convert.file import documents_of, to_file

    gateway = wanted.gateway if "/" in wanted.gateway or not wanted.gateway else f"{wanted.namespace}/{wanted.gateway}"
    try:
        found = to_file(documents_of(list(texts.values()), wanted.namespace), gateway)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    for one in found.refused:
        click.echo(f"not in force: {one}", err=True)
    if found.refused and not wanted.partial:
        click.echo("nothing was written; --partial writes the rest", err=True)
        return LOST
    if wanted.output is None:
        click.echo(found.text, nl=False)
        return 0
    try:
        _write_private(Path(wanted.output), found.text)
    except OSError as error:
        raise click.ClickException(f"cannot write {wanted.output}: {error.strerror}") from None
    return 0


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read: it may hold credentials."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def run(words: list[str]) -> int:
    """Run the command and return its exit status."""
    try:
        result = command.main(words, "headgate convert", standalone_mode=False)
    except click.ClickException as error:
        click.echo(f"headgate convert: {error.format_message()}", err=True)
        return 2 if isinstance(error, click.UsageError) else 1
    return result if isinstance(result, int) else 0
