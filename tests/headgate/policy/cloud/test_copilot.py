from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.headgate.policy.cloud.calls_rig import Scripted

from headgate.policy.cloud.copilot import EDITOR, URL, USUAL_LIFE_S, Copilot
from headgate.policy.cloud.refresher import CredentialError, Fetched

NOW = 1_800_000_000
ANSWER = (200, {"token": "tid=1;exp=2:mac", "expires_at": NOW + 1800, "refresh_in": 1500, "endpoints": {"api": "https://x"}})


def token(calls: Scripted, environ: dict[str, str]) -> Fetched:
    return asyncio.run(Copilot(calls, environ, lambda: float(NOW))())


def test_a_developer_s_token_is_exchanged() -> None:
    calls = Scripted(ANSWER)
    found = token(calls, {"GITHUB_TOKEN": "third", "COPILOT_GITHUB_TOKEN": " first\n", "GH_TOKEN": "second"})
    assert found == Fetched(b"tid=1;exp=2:mac", 1800, 1500)
    assert found.times() == (1500, 1790)
    [(method, url, headers, _)] = calls.seen
    assert (method, url) == ("GET", URL)
    assert headers == {
        "authorization": "token first", "accept": "application/json", "user-agent": EDITOR, "editor-version": EDITOR,
    }  # fmt: skip


def test_the_exchange_may_be_elsewhere() -> None:
    calls = Scripted(ANSWER)
    token(calls, {"GH_TOKEN": "t", "COPILOT_TOKEN_URL": "https://api.corp.ghe.com/copilot_internal/v2/token"})
    assert calls.seen[0][1] == "https://api.corp.ghe.com/copilot_internal/v2/token"


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("apps.json", {"github.com:Iv1.abc": {"user": "u", "oauth_token": "kept"}}),
        ("apps.json", {"corp.ghe.com": {"oauth_token": "other"}, "github.com": {"oauth_token": "kept"}}),
        ("hosts.json", {"github.com": {"oauth_token": "kept"}}),
    ],
)
@pytest.mark.parametrize("variable", ["HOME", "XDG_CONFIG_HOME"])
def test_what_editors_keep_is_found(tmp_path: Path, name: str, document: Any, variable: str) -> None:
    folder = tmp_path / (".config/github-copilot" if variable == "HOME" else "github-copilot")
    folder.mkdir(parents=True)
    (folder / name).write_text(json.dumps(document))
    calls = Scripted(ANSWER)
    token(calls, {variable: str(tmp_path)})
    assert calls.seen[0][2]["authorization"] == "token kept"


@pytest.mark.parametrize("text", ["", "[]", '{"github.com": 5}', '{"github.com": {"oauth_token": null}}', "nonsense"])
def test_without_a_token_there_is_no_call(tmp_path: Path, text: str) -> None:
    (tmp_path / "github-copilot").mkdir()
    (tmp_path / "github-copilot/apps.json").write_text(text)
    calls = Scripted()
    with pytest.raises(CredentialError, match="no developer's token"):
        token(calls, {"XDG_CONFIG_HOME": str(tmp_path), "GH_TOKEN": " "})
    assert calls.seen == []


@pytest.mark.parametrize("given", ["two words", "line\nbreak", "caf\u00e9"])
def test_a_token_that_fits_in_no_header_is_told_without_it(given: str) -> None:
    with pytest.raises(CredentialError) as caught:
        token(Scripted(), {"GH_TOKEN": given})
    assert given not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((401, {"message": "Bad credentials: secret"}), "GitHub answered 401"),
        ((403, {"error_details": {"message": "no seat: secret"}}), "GitHub answered 403"),
        ((200, {"expires_at": NOW}), "GitHub answered without a token"),
        ((200, {"token": 5}), "GitHub answered without a token"),
        ((200, {"token": "a b"}), "an invalid token"),
        ((200, ["token"]), "GitHub did not answer with a JSON object"),
    ],
)
def test_answers_that_cannot_be_used(answer: Any, why: str) -> None:
    with pytest.raises(CredentialError) as caught:
        token(Scripted(answer), {"GH_TOKEN": "t"})
    assert str(caught.value) == why


@pytest.mark.parametrize("told", [{}, {"expires_at": None, "refresh_in": "soon"}, {"expires_at": True, "refresh_in": -1}])
def test_an_answer_without_an_end_is_good_for_the_usual_time(told: dict[str, Any]) -> None:
    assert token(Scripted((200, {"token": "t", **told})), {"GH_TOKEN": "t"}) == Fetched(b"t", USUAL_LIFE_S)
