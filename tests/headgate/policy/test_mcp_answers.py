"""Clients whose authorization answers come back through the gateway: what leads where, and what leads nowhere."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from headgate.crypto.sealed import Sealer
from headgate.dialect.oauth_answers import RequestError, basic, basic_client
from headgate.policy import mcp_answers
from headgate.policy.mcp_answers import Answers, Seals

URL = "https://gw.test/.well-known/oauth-authorization-server/mcp"
ISSUER = "https://idp.test"
BACK = "https://app.test/cb"


def answers(key: bytes = b"k" * 32, own: tuple[str, tuple[str, ...]] | None = None) -> Answers:
    return Answers(ISSUER, own, Seals(ISSUER, lambda purpose: Sealer(key, purpose)))


def registered(found: Answers, *uris: str) -> tuple[str, str]:
    """Return the id that a client gets, and its redirect URI at the provider."""
    body, client = found.registration(json.dumps({"redirect_uris": uris}).encode(), URL)
    [callback] = json.loads(body)["redirect_uris"]
    answer = found.registered(b'{"client_id":"real~id","registration_access_token":"CANARY","client_secret":"s"}', client)
    assert answer is not None
    shown = json.loads(answer)
    assert shown.keys() == {"client_id", "client_secret", "redirect_uris"}
    assert (shown["redirect_uris"], "real~id" in shown["client_id"]) == (list(uris), False)
    return shown["client_id"], callback


def asked(client_id: str, uri: str = BACK, **more: str) -> str:
    fields = {"response_type": "code", "client_id": client_id, "redirect_uri": uri, "state": "mine", "resource": "https://r", **more}
    return urlencode(fields)


def test_there_and_back() -> None:
    here, elsewhere = answers(), answers()
    client_id, callback = registered(here, BACK)
    sent = parse_qs(elsewhere.authorize(asked(client_id), URL))
    assert (sent["client_id"], sent["redirect_uri"], sent["resource"]) == (["real~id"], [callback], ["https://r"])
    tag = callback.rpartition("/")[2]
    query = urlencode({"code": "c d", "state": sent["state"][0], "iss": ISSUER})
    place = urlsplit(here.returned(query, tag))
    assert place._replace(query="").geturl() == BACK
    assert parse_qs(place.query) == {"code": ["c d"], "state": ["mine"], "iss": ["https://gw.test/mcp"]}
    form, field = elsewhere.token(urlencode({"client_id": client_id, "redirect_uri": BACK, "code": "c"}), None, URL)
    assert (parse_qs(form), field) == ({"client_id": ["real~id"], "redirect_uri": [callback], "code": ["c"]}, None)
    form, field = here.token("grant_type=refresh_token", basic(client_id, "s"), URL)
    assert field is not None
    assert (form, basic_client(field)) == ("grant_type=refresh_token", ("real~id", "s"))


def test_an_answer_is_its_clients() -> None:
    found = answers()
    (honest, place), (evil, other) = registered(found, BACK), registered(found, "https://evil.test/")
    assert place != other
    stolen = parse_qs(found.authorize(asked(evil, "https://evil.test/"), URL))["state"][0]
    good = parse_qs(found.authorize(asked(honest), URL))["state"][0]
    tag = place.rpartition("/")[2]
    assert found.returned(urlencode({"code": "c", "state": good, "iss": ISSUER}), tag).startswith(BACK)
    for state, given, iss in ((stolen, tag, ISSUER), (good, other.rpartition("/")[2], ISSUER), (good, "", ISSUER), ("x", tag, ISSUER),
                              ("", tag, ISSUER), (good, tag, "https://other.test"), (good, tag, "")):  # fmt: skip
        with pytest.raises(RequestError):
            found.returned(urlencode({"code": "c", "state": state, "iss": iss}), given)
    with pytest.raises(RequestError):
        found.returned(urlencode({"code": "c", "state": good}), tag)
    with pytest.raises(RequestError):
        answers(b"x" * 32).returned(urlencode({"code": "c", "state": good, "iss": ISSUER}), tag)


def test_logins_end(monkeypatch: pytest.MonkeyPatch) -> None:
    found = answers()
    client_id, place = registered(found, BACK)
    state = parse_qs(found.authorize(asked(client_id), URL))["state"][0]
    monkeypatch.setattr(mcp_answers.time, "time", lambda: 1e12)
    with pytest.raises(RequestError, match="expired"):
        found.returned(urlencode({"code": "c", "state": state, "iss": ISSUER}), place.rpartition("/")[2])


@pytest.mark.parametrize(
    "more",
    [
        {"uri": "https://evil.test/"}, {"request": "x.y.z"}, {"request_uri": "urn:x"}, {"response_mode": "form_post"},
        {"response_type": "token"}, {"response_type": "code id_token"},
    ],
)  # fmt: skip
def test_what_is_not_passed_on(more: dict[str, str]) -> None:
    found = answers()
    client_id, _ = registered(found, BACK)
    with pytest.raises(RequestError):
        found.authorize(asked(client_id, **more), URL)
    with pytest.raises(RequestError, match="repeated"):
        found.authorize(asked(client_id) + "&redirect_uri=https://evil.test/", URL)
    with pytest.raises(RequestError):
        found.token(urlencode({"client_id": client_id, "redirect_uri": "https://evil.test/"}), None, URL)


def test_strangers_pass_as_they_are() -> None:
    found = answers()
    for client_id in ("stranger", "", registered(answers(b"x" * 32), BACK)[0]):
        query = asked(client_id, "https://anywhere.test/")
        assert found.authorize(query, URL) == query
        assert found.token(query, "Basic eDp5", URL) == (query, "Basic eDp5")


def test_one_client_for_everybody() -> None:
    found = answers(own=("ours", (BACK,)))
    sent = parse_qs(found.authorize(asked("ours"), URL))
    assert (sent["client_id"], sent["redirect_uri"]) == (["ours"], [f"{URL}/callback"])
    query = urlencode({"error": "access_denied", "state": sent["state"][0], "iss": ISSUER})
    assert "error=access_denied" in found.returned(query, "")
    with pytest.raises(RequestError):
        found.returned(query, "t" * 22)
    with pytest.raises(RequestError):
        found.authorize(asked("ours", "https://evil.test/"), URL)


@pytest.mark.parametrize("answer", [b"", b"[", b"[]", b"{}", b'{"client_id":7}'])
def test_answers_that_cannot_be_read(answer: bytes) -> None:
    found = answers()
    _, client = found.registration(json.dumps({"redirect_uris": [BACK]}).encode(), URL)
    assert found.registered(answer, client) is None
