"""`gwctl version`."""

from __future__ import annotations

import json
import platform
import sys

import click

from headgate.telemetry.build_info import build_date, build_info


@click.command("version")
def version() -> None:
    """Print the version as one line of JSON."""
    found = build_info()
    click.echo(
        json.dumps(
            {
                "version": found["version"],
                "commit": found["git_revision"],
                "buildDate": build_date(),
                "runtimeOS": sys.platform,
                "runtimeArch": platform.machine(),
            }
        )
    )
