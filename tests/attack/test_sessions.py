"""Session cookies that were spoilt, cut, joined, or moved to where they do not belong (CWE-345, CWE-384, CWE-565; see README.md).

Callbacks, state, nonce and ID tokens: `BAD_TOKENS`, `BAD_ANSWERS` and others in tests/end_to_end/test_oidc.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest
from tests.attack.recording_rig import Recording
from tests.end_to_end.fake_provider import FakeProvider
from tests.end_to_end.oidc_rig import ENVIRONMENT, Browser
from tests.end_to_end.running import Gateway

POLICY = """
  policies:
    oidc: {issuer: "ISSUER", clientId: app, clientSecret: secret, redirectURI: "http://127.0.0.1:{port}/%s/done"}
  backends: [{host: "127.0.0.1:BACKEND"}]
"""
CONFIG = "gateways: {default: {port: {port}}}\nroutes:" + "".join(
    f"\n- name: {name}\n  matches: [{{path: {{pathPrefix: /{name}}}}}]{POLICY % name}".rstrip() for name in ("one", "two"))


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    found = FakeProvider()
    yield found
    found.close()


@pytest.fixture(scope="module")
def running(serving: Callable[..., Gateway], provider: FakeProvider, recording: Recording) -> Gateway:
    return serving(CONFIG.replace("ISSUER", provider.issuer).replace("BACKEND", str(recording.port)), environment=ENVIRONMENT)


def session(running: Gateway, provider: FakeProvider, path: str, subject: str) -> tuple[str, str]:
    """Name and value of the cookie of somebody who has logged in."""
    provider.claims = {"sub": subject}
    with Browser() as browser:
        assert browser.log_in(running, provider, path).status_code == 302
        return browser.session()


def test_no_cookie_but_the_one_that_was_given_is_a_session(running: Gateway, provider: FakeProvider, recording: Recording, long: bool) -> None:
    name, ada = session(running, provider, "/one", "ada")
    again, bob = session(running, provider, "/one", "bob")
    other, elsewhere = session(running, provider, "/two", "ada")
    assert name == again != other
    assert len(ada) > 60

    def changed(at: int) -> str:
        return ada[:at] + ("A" if ada[at] != "A" else "B") + ada[at + 1 :]

    step = 1 if long else max(len(ada) // 24, 1)
    spoilt = {f"letter {at} changed": changed(at) for at in (*range(0, len(ada) - 1, step), 0, len(ada) // 2)}
    spoilt |= {f"the first {at} letters": ada[:at] for at in range(0, len(ada), step)}
    spoilt |= {f"without the first {at} letters": ada[at:] for at in range(1, len(ada), step)}
    spoilt |= {f"halves of two sessions at {at}": ada[:at] + bob[at:] for at in range(8, min(len(ada), len(bob)) - 8, step)}
    spoilt |= {
        "twice": ada + ada, "more behind": ada + "AAAA", "more before": "AAAA" + ada, "backwards": ada[::-1], "in capitals": ada.upper(), "padding": ada + "====",
        "of another policy": elsewhere, "the name of it": name, "zeros": "A" * len(ada), "JSON": '{"sub":"ada"}', "base64 of JSON": "eyJzdWIiOiJhZGEifQ", "quotes": f'"{ada}x"',
    }  # fmt: skip
    with httpx.Client(timeout=60) as client:
        def asked(cookie: str, path: str = "/one") -> int:
            return client.get(running.url + path, headers={"cookie": cookie}).status_code

        before = len(recording.arrived)
        assert [asked(f"{name}={ada}"), asked(f"{name}={bob}"), asked(f"{other}={elsewhere}", "/two")] == [200, 200, 200]
        wrong = {what: found for what, value in spoilt.items() if (found := asked(f"{name}={value}")) != 302}
        wrong |= {what: found for what, cookie in {
            "at another route": f"{name}={ada}", "under the name of another policy": f"{other}={ada}"}.items() if (found := asked(cookie, "/two")) != 302}
        wrong |= {what: found for what, cookie in {
            "another name": f"x{name}={ada}", "a name in capitals": f"{name.upper()}={ada}", "in the value of another": f"a={name}={ada}", "no name": ada,
            "two, the bad one last": f"{name}={ada}; {name}={changed(5)}", "two of two people": f"{name}={ada}; {name}={bob}"}.items() if (found := asked(cookie)) != 302}
        assert not wrong, wrong
        assert len(recording.arrived) == before + 3, "a backend was asked"
