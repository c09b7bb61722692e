"""Run `python -m tests.peers.conformant --http 127.0.0.1:0`, or without `--http` over standard input and output."""

from __future__ import annotations

import argparse
import asyncio

from tests.peers.conformant.http_front import HttpFront
from tests.peers.conformant.stdio_front import StdioFront

from headgate.sample.web import end_with_parent, run


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", metavar="HOST:PORT", help="serve StreamableHTTP; port 0 is any")
    parser.add_argument("--only", choices=("old", "new"), help="revisions with sessions, or the one without")
    parser.add_argument("--any-host", action="store_true", help="do not look at host and origin")
    parser.add_argument("--aside", action="store_true", help="ask clients on their event stream")
    options = parser.parse_args()
    old, new = options.only != "new", options.only != "old"
    if options.http is None:
        asyncio.run(StdioFront(old, new).serve())
        return
    end_with_parent()
    host, _, port = options.http.rpartition(":")
    front = HttpFront(old, new, not options.any_host, options.aside)
    asyncio.run(run([("mcp", front.handle, host, int(port))]))


main()
