"""`gwctl catalog import`: a cost catalog from the models.dev data set."""

from __future__ import annotations

import sys

import click

from headgate.cli.target import FILE
from headgate.dialect.llm import models_dev
from headgate.document.replace import replace_file


def _read(source: str) -> bytes:
    if "://" in source:
        raise click.ClickException("--source is a file: download https://models.dev/api.json first")
    try:
        if source == "-":
            return sys.stdin.buffer.read()
        with open(source, "rb") as stream:
            return stream.read()
    except OSError as error:
        raise click.ClickException(f"cannot read {source!r}: {error.strerror}") from None


def _write(path: str, text: str) -> None:
    """Replace the file atomically: a gateway that watches it must never read a partial file."""
    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise click.ClickException(f"cannot write {path!r}: {error.strerror}") from None


@click.command("import")
@click.option("--source", required=True, type=FILE, help="The data set's api.json; - for standard input.")
@click.option("--providers", metavar="LIST", default="", help="Only these providers, separated by commas.")
@click.option("--legacy", is_flag=True, help="Include deprecated models.")
@click.option("--pretty", is_flag=True, help="Write with line breaks.")
@click.option("-o", "--out", type=FILE, help="File for the catalog  [default: standard output].")
def import_(source: str, providers: str, legacy: bool, pretty: bool, out: str | None) -> None:
    """Turn the models.dev data set into a cost catalog for `config.modelCatalog`.

    \b
    Examples:
      gwctl catalog import --source api.json -o prices.json
      gwctl catalog import --source api.json --providers openai,google --pretty
    """
    wanted = [name.strip() for name in providers.split(",") if name.strip()]
    try:
        found = models_dev.read(_read(source), wanted, legacy=legacy)
    except models_dev.NotTheDataSet as error:
        raise click.ClickException(f"{source}: {error}") from None
    if not found.models:
        raise click.ClickException(f"{source}: no model has a price")
    text = models_dev.document(found.catalog, pretty=pretty)
    if out is None or out == "-":
        click.echo(text, nl=False)
    else:
        _write(out, text)
    told = f"{found.models} models of {len(found.catalog)} providers; without a price: {found.skipped}"
    if found.left_out:
        told += f"; deprecated, left out: {found.left_out}"
    if found.rounded:
        told += f"; rounded to six decimals: {found.rounded}"
    click.echo(told, err=True)
