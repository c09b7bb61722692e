"""Pages of flame graphs."""

from __future__ import annotations

import json
import re
from typing import Any

from headgate.cli.flame_graph import flame_graph, has_samples
from headgate.cli.pprof_reader import ReadProfile, ReadSample

PROFILE = ReadProfile(
    (("cpu", "count"),),
    (
        ReadSample(("main", "parse", "</script><b>x"), (30,), "worker 0"),
        ReadSample(("main", "send"), (60,), "worker 0"),
        ReadSample(("main",), (10,), "supervisor"),
        ReadSample(("main", "never"), (0,), "supervisor"),
    ),
)


def data(page: str) -> Any:
    [found] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found)


def test_the_tree_is_that_of_the_stacks() -> None:
    page = flame_graph(PROFILE, "cpu", "cpu <profile>")
    assert data(page) == {
        "unit": "samples",
        "root": ["all", 100, [
            ["worker 0", 90, [["main", 90, [["send", 60, []], ["parse", 30, [["</script><b>x", 30, []]]]]]]],
            ["supervisor", 10, [["main", 10, []]]],
        ]],
    }  # fmt: skip
    assert "<title>cpu &lt;profile&gt;</title>" in page


def test_it_loads_nothing() -> None:
    page = flame_graph(PROFILE, "cpu", "x")
    assert not re.search(r"https?://|src=|@import|url\(|href=", page)


def test_deep_stacks_and_narrow_frames_are_bounded() -> None:
    deep = ReadProfile(
        (("cpu", "count"),),
        (ReadSample(tuple(f"f{at}" for at in range(5000)), (1_000_000,), ""), ReadSample(("rare",), (1,), "")),
    )
    page = flame_graph(deep, "cpu", "x")
    assert "f199" in page
    assert "f200" not in page
    assert "rare" not in page


def test_nothing_to_see_is_told() -> None:
    assert has_samples(PROFILE, "cpu")
    assert not has_samples(ReadProfile((("cpu", "count"),), (ReadSample(("a",), (0,), ""),)), "cpu")
    assert not has_samples(ReadProfile((), ()), "cpu")
    assert data(flame_graph(ReadProfile((), ()), "cpu", "x"))["root"] == ["all", 0, []]


def test_names_that_the_page_has_itself_are_only_names() -> None:
    named = ReadProfile((("cpu", "count"),), (ReadSample(("TITLE", "DATA"), (1,), ""),))
    page = flame_graph(named, "cpu", "cpu profile DATA.pb.gz")
    assert data(page)["root"] == ["all", 1, [["TITLE", 1, [["DATA", 1, []]]]]]
    assert "<h1>cpu profile DATA.pb.gz</h1>" in page
