"""All engine modules against their oracles. Usage: python -m bench.micro [--only route_table,...] [--out FILE]

A single one: python -m bench.micro.route_table
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from pathlib import Path
from typing import Any

from bench.macro import peers, procfs
from bench.micro import timing

SCHEMA = 1
MODULES = (
    "http1_codec",
    "route_table",
    "sse_decode",
    "json_peek",
    "guard_scan",
    "guarded_history",
    "token_bucket",
    "expressions",
    "policies",
    "counters",
    "access_log",
    "llm_translate",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.micro", description=__doc__)
    parser.add_argument("--only", default=",".join(MODULES), help="of " + ", ".join(MODULES))
    parser.add_argument("--out", default="", help="where to write the result file")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in options.only.split(","):
        if name not in MODULES:
            parser.error(f"no module {name!r}")
        rows += timing.show(importlib.import_module(f"bench.micro.{name}").rows())
    if options.out:
        versions = peers.versions()
        document = {
            "schema": SCHEMA,
            "date": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()),
            "machine": procfs.machine(),
            "versions": {name: versions[name] for name in ("python", "cython", "commit", "uncommitted")},
            "micro": rows,
        }
        Path(options.out).parent.mkdir(parents=True, exist_ok=True)
        Path(options.out).write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
