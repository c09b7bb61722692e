"""The same bytes before nginx and HAProxy: where they and this gateway differ is kept in peers.md (HEADGATE_REGOLD=1 writes it)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.attack.peers_rig import NAMES, peer, version
from tests.attack.recording_rig import Ambiguous, Recording, tell
from tests.attack.smuggling_cases import CLASSES
from tests.attack.test_smuggling import CONFIG, heads_of
from tests.end_to_end.running import Gateway

TABLE = Path(__file__).with_name("peers.md")
HEAD = """# Where gateways read the same bytes differently

Made by `HEADGATE_REGOLD=1 pytest tests/attack/test_smuggling_peers.py`. A cell says, for each request in the order of the bytes, the target that
the backend saw or what the gateway answered itself (`refused`: with a status from 400 on); `ambiguous`: the backend got bytes with more than one reading. Cases in which all
agree are left out. The bytes of each are in `smuggling_cases.py` under its class and name.

"""

# One and the same HAProxy process reads this one way or the other: whether it refuses the trailer itself or passes it on goes by what its memory
# of an earlier message holds, as it happens.
VARYING = {("haproxy", "trailers", "a space before the colon"): ("refused", "refused /smuggled ambiguous")}


def reading(port: int, data: bytes, recording: Recording, pause: float) -> str:
    """What a gateway makes of the bytes, in a word or two."""
    before = recording.arrived[-1].serial if recording.arrived else 0
    recording.faults.clear()
    try:
        told = tell(port, data, heads=heads_of(data), pause=pause)
    except Ambiguous:
        return "no HTTP"
    except TimeoutError:
        return "no answer"
    known = {str(one.serial): one.message.start[1] for one in recording.since(before)}
    found = []
    for answer in told.answers:
        if answer.start[0][0] != "1":
            serial = answer.value("x-serial")
            found.append("/x/-early" if serial == "0" else known.pop(serial, "a lost answer") if serial else "refused" if answer.start[0] >= "400" else answer.start[0])
    found += [f"{target} (no answer)" for target in known.values()]
    found += ["ambiguous"] if recording.faults else []
    return " ".join(found) or "closed"


def cell(name: str, kind: str, case: str, found: str) -> str:
    """What stands in the table: where a peer varies, all its readings."""
    known = VARYING.get((name, kind, case), ())
    return " or ".join(known) if found in known else found


def table(ports: dict[str, int], recording: Recording) -> str:
    names = ["headgate", *NAMES]
    lines = [HEAD + "| class | case | " + " | ".join([names[0], *(f"{name} {version(name)}" for name in NAMES)]) + " |"]
    lines.append("|" + "---|" * (len(names) + 2))
    for kind, cases in CLASSES.items():
        for name, data, _ in cases:
            cells = [cell(one, kind, name, reading(ports[one], data, recording, 0 if one == "headgate" else 0.2)) for one in names]
            if len(set(cells)) > 1:
                lines.append(f"| {kind} | {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


@pytest.mark.slow
def test_the_differences_are_the_known_ones(serving: Callable[..., Gateway], recording: Recording, tmp_path: Path) -> None:
    for name in NAMES:
        if not version(name):
            pytest.skip(f"{name} is not installed")
        if f"{name} {version(name)} |" not in TABLE.read_text() and not os.environ.get("HEADGATE_REGOLD"):
            pytest.skip(f"{name} {version(name)} is not the version of the table")
    running = serving(CONFIG % recording.port)
    with peer("nginx", tmp_path, recording.port) as nginx, peer("haproxy", tmp_path, recording.port) as haproxy:
        found = table({"headgate": running.port, "nginx": nginx, "haproxy": haproxy}, recording)
    if os.environ.get("HEADGATE_REGOLD"):
        TABLE.write_text(found)
    assert found == TABLE.read_text()
