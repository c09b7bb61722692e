"""Secrets leave the text and come back to where they belong, or not at all."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headgate.config.redaction import restored_text, shown_text
from headgate.config.shape.root import ROOT as ROOT_SHAPE
from headgate.document.nodes import plain
from headgate.document.read import read
from headgate.document.write import write
from headgate.errors import ConfigErrors

ROOT = Path(__file__).resolve().parents[3]
TEXT = """\
# yaml-language-server: $schema=x.json
# apiKey: sk-of-old
llm: # all models
  models:
  - {name: a, provider: openai, params: {apiKey: sk-1, model: x}} # first
  - name: b
    provider: openai
    params:
      apiKey: |
        sk-2
      model: y # fine
  - {name: c, provider: openai, params: {apiKey: "${KEY}"}}
routes:
- name: r
  policies:
    apiKey: {keys: [{key: k-1, metadata: {user: u1}}, {key: k-2, metadata: {user: u2}}, {key: k-3}, {key: k-4}]}
mcp: {targets: [{name: t, stdio: {cmd: x, args: [--api-key, sk-3, --port, "80", --token=sk-4]}}]}
"""


def values(text: str) -> object:
    return plain(read(text, "x"))


def restored(text: str) -> object:
    return values(restored_text(text, TEXT, "c.yaml"))


def refused(text: str) -> list[str]:
    with pytest.raises(ConfigErrors) as caught:
        restored_text(text, TEXT, "c.yaml")
    assert "sk-" not in str(caught.value)
    return [f"{one.path} {one.line}" for one in caught.value.errors]


SHOWN = shown_text(TEXT, "c.yaml")


def test_nothing_secret_is_shown_and_all_else_is_as_it_was() -> None:
    for secret in ("sk-1", "sk-2", "sk-3", "sk-4", "sk-of-old", "k-1", "k-4"):
        assert secret not in SHOWN
    assert SHOWN.splitlines()[:3] == ["# yaml-language-server: $schema=x.json", "# <redacted>", "llm: # all models"]
    assert "{name: a, provider: openai, params: {apiKey: <redacted>, model: x}} # first" in SHOWN
    assert "      model: y # fine" in SHOWN
    assert '"${KEY}"' in SHOWN


def test_what_was_not_touched_comes_back_whole_comments_too() -> None:
    assert restored(SHOWN) == values(TEXT)
    assert "# apiKey: sk-of-old\n" in restored_text(SHOWN, TEXT, "c.yaml")


EDITS = {
    "another field of the same item": ("model: x}", "model: z}"),
    "an item before": ("  models:\n", "  models:\n  - {name: new, provider: openai, params: {apiKey: \"${NEW}\"}}\n"),
    "a value written anew": ("apiKey: <redacted>, model: x", "apiKey: sk-new, model: x"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_beside_a_secret_keeps_it(name: str) -> None:
    before, after = EDITS[name]
    assert before in SHOWN
    text = SHOWN.replace(before, after)
    wanted = TEXT.replace(before.replace("<redacted>", "sk-1"), after)
    assert restored(text) == values(wanted)


def test_items_that_changed_places_keep_their_own_secrets() -> None:
    first, second = "- {name: a, provider: openai, params: {apiKey: sk-1}}", "- {name: b, provider: openai, params: {apiKey: sk-2}}"
    held = f"llm:\n  models:\n  {first}\n  {second}\n"
    shown = shown_text(f"llm:\n  models:\n  {second}\n  {first}\n", "x").replace("openai", "gemini")
    found = values(restored_text(shown, held, "x"))
    assert [(one["name"], one["params"]["apiKey"]) for one in found["llm"]["models"]] == [("b", "sk-2"), ("a", "sk-1")]  # type: ignore[index]


def test_a_mark_whose_value_nobody_knows_is_refused_with_its_place() -> None:
    keys = "keys: [{key: <redacted>, metadata: {user: u1}}, {key: <redacted>, metadata: {user: u2}}, {key: <redacted>}, {key: <redacted>}]"
    assert keys in SHOWN
    # One of two that look alike is gone: nobody knows which.
    assert refused(SHOWN.replace(", {key: <redacted>}, {key: <redacted>}]", ", {key: <redacted>}]")) == [
        "routes[0].policies.apiKey.keys[2].key 15"
    ]
    assert refused(SHOWN.replace("name: a,", "name: a, params2: <redacted>,").replace("name: r", "name: <redacted>"))[0].startswith(
        "llm.models[0].params2 "
    )
    # Told apart by what stands beside them.
    fewer = SHOWN.replace("{key: <redacted>, metadata: {user: u1}}, ", "").replace(", {key: <redacted>}, {key: <redacted>}]", "]")
    keys_found = restored(fewer)["routes"][0]["policies"]["apiKey"]["keys"]  # type: ignore[index]
    assert keys_found == [{"key": "k-2", "metadata": {"user": "u2"}}]


def test_a_secret_that_is_used_twice_is_one() -> None:
    held = "llm:\n  models:\n  - {name: a, provider: openai, params: {apiKey: &k sk-1}}\n  - {name: b, provider: openai, params: {apiKey: *k}}\n"
    shown = shown_text(held, "x")
    assert "apiKey: &k <redacted>}" in shown
    assert values(restored_text(shown, held, "x")) == values(held)


def test_hidden_comments_go_when_nobody_knows_which_is_which() -> None:
    assert "sk-of-old" not in restored_text(SHOWN + "# <redacted>\n", TEXT, "c.yaml")


def test_all_examples_come_back_as_they_were() -> None:
    for path in [*ROOT.glob("examples/*.yaml"), *ROOT.glob("tests/golden/config/*.yaml")]:
        text = path.read_text()
        try:
            shown = shown_text(text, str(path))
        except ConfigErrors:
            continue
        assert values(restored_text(shown, text, str(path))) == values(text), path


@pytest.mark.parametrize("seed", range(60))
def test_of_any_document_no_secret_is_shown_and_all_come_back(documents: Callable[..., Any], seed: int) -> None:
    made = documents(random.Random(seed), "canary-0815").of(ROOT_SHAPE)
    text = write(made)
    shown = shown_text(text, "x")
    assert "canary-0815" not in shown
    assert values(restored_text(shown, text, "x")) == made


BODY = "MC4CAQAwBQYDK2VwBCIEIAyC\nAbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCd"
MARKED = f"-----BEGIN PRIVATE KEY-----\n{BODY}\n-----END PRIVATE KEY-----"
HOLDERS = {
    "listener": "gateways:\n  g:\n    port: 1\n    tls:\n      cert: site.pem\n      key: {}\n      minTLSVersion: TLS_V1_3\n",
    "backend": "backends:\n- name: b\n  host: h:1\n  policies:\n    backendTLS:\n      cert: site.pem\n      key: {}\n      hostname: a\n",
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("key", [MARKED, BODY, MARKED[:40]], ids=["whole", "without its marks", "cut off"])
@pytest.mark.parametrize("style", ["|", "|-", ">-", '"'])
def test_a_private_key_is_hidden_and_comes_back(holder: str, key: str, style: str) -> None:
    lines = "".join(f"\n        {line}" for line in key.splitlines())
    written = json.dumps(key) if style == '"' else f"{style}{lines}"
    if style == ">-" and key is BODY:
        return  # one line without marks might be the name of a file
    text = HOLDERS[holder].format(written)
    shown = shown_text(text, "c.yaml")
    assert not any(line in shown for line in key.splitlines())
    assert "key: <redacted>" in shown
    back = restored_text(shown.replace("site.pem", "other.pem"), text, "c.yaml")
    assert plain(read(back, "c")) == plain(read(text.replace("site.pem", "other.pem"), "c"))


@pytest.mark.parametrize("holder", HOLDERS)
def test_the_file_of_a_private_key_is_shown(holder: str) -> None:
    text = HOLDERS[holder].format("site.key")
    assert shown_text(text, "c.yaml") == text


WRITTEN = """\
config:
  database: {url: "sqlite://data.db"}   # a path
llm:
  models:
  - name: a
    provider: openai
    params: {apiKey: sk-plain, baseUrl: "https://a.test/v1"}   # one
  - name: b
    provider: openai
    params:
      apiKey: 'sk-single'
  - name: c
    provider: openai
    params:
      apiKey: >-
        sk-folded
"""


def test_lines_that_nobody_touched_are_written_as_they_were() -> None:
    shown = shown_text(WRITTEN, "c.yaml")
    assert "sk-" not in shown
    assert restored_text(shown, WRITTEN, "c.yaml") == WRITTEN
    edited_text = shown.replace("https://a.test/v1", "https://b.test/v1")
    assert restored_text(edited_text, WRITTEN, "c.yaml") == WRITTEN.replace("https://a.test/v1", "https://b.test/v1")


def test_a_value_that_moved_is_written_so_that_it_means_the_same() -> None:
    shown = shown_text(WRITTEN, "c.yaml")
    moved = shown.replace("    params:\n      apiKey: <redacted>\n", "    params: {apiKey: <redacted>}\n")
    assert moved != shown
    assert values(restored_text(moved, WRITTEN, "c.yaml")) == values(WRITTEN)


def test_the_path_of_a_sqlite_database_is_no_secret() -> None:
    assert '{url: "sqlite://data.db"}' in shown_text(WRITTEN, "c.yaml")
    hidden = shown_text(WRITTEN.replace("sqlite://data.db", "postgres://ada:pw@db.test/x"), "c.yaml")
    assert "{url: <redacted>}" in hidden
    assert "<redacted>" in shown_text(WRITTEN.replace("sqlite://data.db", "sqlite://data.db?key=pw"), "c.yaml")
