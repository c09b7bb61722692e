"""Whatever the bytes: what is a message is cut up into the items that the standard parser finds, and nothing else is."""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "engine"), str(ROOT / "fuzz" / "peek")]

from fuzz_json import mutated  # noqa: E402

from headgate_engine.peek.items import list_of  # noqa: E402
from headgate_engine.peek.rpc import NotAMessage, parse  # noqa: E402

SEEDS = [
    b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","_meta":{"ui":{}}},{"x":[{"name":"b"}],"name":"c"}]}}',
    b'{"jsonrpc":"2.0","id":"i","result":{"nextCursor":"n","tools":[1,"]",null,{"n\\u0061me":"\\"d\\\\"}]}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"name":"u"}}}',
]


def check(data: bytes) -> None:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = random.randrange(2**32) if options.seed is None else options.seed
    source = random.Random(seed)
    print(f"seed {seed}")
    count = 0
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        data = source.choice(SEEDS)
        for _ in range(source.randint(0, 4)):
            data = mutated(data, source)
        check(data)
        count += 1
    print(f"{count} inputs, no fault")


if __name__ == "__main__":
    main()
