"""Whatever the bytes: what is a message is cut up into the items that the standard parser finds, and nothing else is."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "oracles"), str(ROOT / "fuzz"), str(ROOT / "fuzz" / "peek")]

from fuzz_json import PIECES  # noqa: E402
from harness import mutated, run  # noqa: E402

from headgate_engine.peek.items import list_of  # noqa: E402
from headgate_engine.peek.rpc import NotAMessage, parse  # noqa: E402

SEEDS = [
    b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","_meta":{"ui":{}}},{"x":[{"name":"b"}],"name":"c"}]}}',
    b'{"jsonrpc":"2.0","id":"i","result":{"nextCursor":"n","tools":[1,"]",null,{"n\\u0061me":"\\"d\\\\"}]}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"name":"u"}}}',
]


def check(data: bytes, _: random.Random) -> None:
    """One input."""
    try:
        message = parse(data)
    except NotAMessage:
        return
    try:
        found = json.loads(data)
    except ValueError:
        # An integer of thousands of digits is JSON, and more than int() takes.
        return
    if message.name is not None:
        assert parse(message.with_name("other")).name == "other", data
    _, items = list_of(message, b"tools", b"name")
    result = found.get("result")
    wanted = result.get("tools") if isinstance(result, dict) else None
    wanted = wanted if isinstance(wanted, list) else []
    assert [item.decoded() for item in items] == wanted, data
    for item, one in zip(items, wanted, strict=True):
        name = one.get("name") if isinstance(one, dict) else None
        assert item.name == (name if isinstance(name, str) else None), data


def made(source: random.Random) -> bytes:
    """One of the seeds, spoilt up to four times."""
    found = source.choice(SEEDS)
    for _ in range(source.randint(0, 4)):
        found = mutated(found, PIECES, source)
    return found


def main() -> None:
    run(__doc__, made, check, SEEDS)


if __name__ == "__main__":
    main()
