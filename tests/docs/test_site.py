"""The site (`make site`): each page has a place in its navigation."""

from __future__ import annotations

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_every_page_has_one_place() -> None:
    sections = yaml.safe_load((ROOT / "ci/site/mkdocs.yml").read_text())["nav"]
    placed = [page for section in sections for pages in section.values() for page in pages]
    assert sorted(placed) == sorted(["index.md", *(page.name for page in ROOT.glob("docs/*.md"))])


def test_the_worker_of_the_search_is_copied() -> None:
    """Without it a page from the file system has no search; the generator's own would be fetched from the network."""
    [script] = yaml.safe_load((ROOT / "ci/site/mkdocs.yml").read_text())["extra"]["polyfills"]
    assert (ROOT / "ci/site" / script).is_file()
    assert "ci/site/assets" in (ROOT / "ci/site/build.sh").read_text()
