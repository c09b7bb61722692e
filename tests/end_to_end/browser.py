"""Chromium without a window, spoken to in its DevTools protocol over one WebSocket."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 30.0
# name: key code, and the text that the key types
KEYS = {
    "Tab": (9, ""), "Enter": (13, "\r"), "Space": (32, " "), "Escape": (27, ""), "ArrowDown": (40, ""), "ArrowUp": (38, ""),
    "End": (35, ""), "Home": (36, ""),
}  # fmt: skip
SHIFT = 8
# What Chromium answers to a command whose document goes while it runs.
GONE = ("Inspected target navigated or closed", "Execution context was destroyed", "Cannot find context with specified id")


class Navigated(Exception):
    """The document in which an expression ran went away before it had a value."""


def chromium() -> str:
    """The program; skips the test where there is none."""
    found = os.environ.get("HEADGATE_CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium found: install it (Debian: chromium) or name it in HEADGATE_CHROMIUM")
    return found


class Browser:
    """One process with a profile of its own in `folder`. `hosts`: rules for names, such as `MAP a.test 127.0.0.1`."""

    def __init__(self, folder: Path, hosts: str = "") -> None:
        options = [
            "--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
            "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-sync",
            "--disable-extensions", "--disable-back-forward-cache", "--force-color-profile=srgb", "--remote-debugging-port=0", f"--user-data-dir={folder}",
        ]  # fmt: skip
        if hosts:
            options.append(f"--host-resolver-rules={hosts}")
        if os.geteuid() == 0:
            options.append("--no-sandbox")
        self._log = (folder.parent / "chromium.log").open("wb")
        self._process = subprocess.Popen(
            [chromium(), *options, "about:blank"], stdout=self._log, stderr=self._log, start_new_session=True
        )
        port_file = folder / "DevToolsActivePort"
        # A first start reads hundreds of megabytes of the program.
        deadline = time.monotonic() + 3 * PATIENCE
        while not port_file.exists() or len(port_file.read_text().split()) < 2:
            assert self._process.poll() is None, (folder.parent / "chromium.log").read_text()
            assert time.monotonic() < deadline, "Chromium does not start"
            time.sleep(0.02)
        port, path = port_file.read_text().split()
        self._connection = contextlib.ExitStack()
        self._socket = self._connection.enter_context(connect(f"ws://127.0.0.1:{port}{path}", max_size=None))
        self._number = 0
        self.events: list[dict[str, Any]] = []
        # Tabs that show nothing: the one that it starts with, and those that pages have left.
        self.tabs = [one["targetId"] for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page"]

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send a command; its result. Events that come meanwhile are kept. Raises Navigated."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        self._socket.send(json.dumps(message))
        while True:
            found = json.loads(self._socket.recv(timeout=PATIENCE))
            if found.get("id") == number:
                if found.get("error", {}).get("message", "").startswith(GONE):
                    raise Navigated(params)
                assert "error" not in found, (method, found)
                return found["result"]
            self.events.append(found)

    def page(self, width: int = 1280, height: int = 900) -> Page:
        """A page with nothing from pages before it."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        return self._shown(Page(self, target, context), width, height)

    def tab(self, width: int = 1280, height: int = 900) -> Page:
        """A page in the tab of an earlier one, whose cookies, storage, cache and history are gone. It does without the processes of a new
        page, which take most of a second of a processor; logins over HTTP and answers to preflights stay.
        """
        target = self.tabs.pop() if self.tabs else self.call("Target.createTarget", url="about:blank")["targetId"]
        page = self._shown(Page(self, target, None), width, height)
        page.to_front()
        return page

    @staticmethod
    def _shown(page: Page, width: int, height: int) -> Page:
        page.size(width, height)
        return page

    def close(self) -> None:
        self._connection.close()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(60)
        self._log.close()


class Page:
    """One tab, `context` is what it alone has of the browser; None for a tab that others have had and will have."""

    def __init__(self, browser: Browser, target: str, context: str | None) -> None:
        self._browser = browser
        self._target = target
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._context = context
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def _events(self, method: str) -> list[dict[str, Any]]:
        self.wait("1")          # takes in what is on its way
        return [
            one["params"]
            for one in self._browser.events
            if one.get("method") == method and one.get("sessionId") == self._session
        ]

    def size(self, width: int, height: int) -> None:
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def to_front(self) -> None:
        """Show it: what nobody sees hardly asks the gateway."""
        self._call("Page.bringToFront")

    def prefer(self, **features: str) -> None:
        """Media features, such as prefers_color_scheme="dark"."""
        wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self._call("Emulation.setEmulatedMedia", features=wanted)

    def cookie(self, name: str, value: str, url: str) -> None:
        self._call("Network.setCookie", name=name, value=value, url=url)

    def go(self, url: str) -> None:
        self._call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def js(self, text: str) -> Any:
        """The value of an expression, awaited if it is a promise."""
        found = self._call("Runtime.evaluate", expression=text, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, (text, found["exceptionDetails"])
        return found["result"].get("value")

    def wait(self, text: str, why: str = "") -> Any:
        """Wait until an expression is true, in this document or in one that takes its place meanwhile; its value."""
        deadline = time.monotonic() + PATIENCE
        tried = f"(async () => {{ try {{ const v = await ({text}); return v instanceof Node || v; }} catch {{ return false; }} }})()"
        while True:
            found = None
            with contextlib.suppress(Navigated):
                found = self.js(tried)
            if found:
                return found
            if time.monotonic() > deadline:
                shown = self.js("document.querySelector('#view').innerText")[:3000]
                raise AssertionError(f"{why or text}\n{shown}\n{self.problems()}")
            time.sleep(0.05)

    def wait_text(self, text: str, where: str = "#view") -> None:
        self.wait(f"document.querySelector({json.dumps(where)}).innerText.includes({json.dumps(text)})")

    def click(self, text: str, tag: str = "button") -> None:
        """Click the first visible element with this text."""
        find = f"[...document.querySelectorAll({json.dumps(tag)})].find((one) => one.offsetParent && one.textContent.trim().startsWith({json.dumps(text)}))"
        self.wait(f"(({find}).click(), true)", f"no {tag} {text!r}")

    def fill(self, label: str, value: str) -> None:
        """Put a value into the field with this label, as typing does."""
        field = f"[...document.querySelectorAll('label')].find((one) => one.textContent.startsWith({json.dumps(label)}))"
        self.wait(
            f"((f) => (f.focus(), f.value = {json.dumps(value)}, f.dispatchEvent(new Event('input', {{bubbles: true}})),"
            f" f.dispatchEvent(new Event('change', {{bubbles: true}})), true))({field}.querySelector('input,select,textarea'))",
            f"no field {label!r}",
        )

    def press(self, key: str, modifiers: int = 0) -> None:
        code, text = KEYS[key]
        name = " " if key == "Space" else key
        fields: dict[str, Any] = {"key": name, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self._call("Input.dispatchKeyEvent", type="keyDown", **fields, **({"text": text} if text else {}))
        self._call("Input.dispatchKeyEvent", type="keyUp", **fields)

    def write(self, text: str) -> None:
        """Type into what has the focus."""
        self._call("Input.insertText", text=text)

    def whole(self, width: int, least: int = 860) -> None:
        """Make the window as high as the page is at this width."""
        self.size(width, least)
        height = self.js("document.documentElement.scrollHeight")
        self.size(width, max(least, min(height, 2400)))
        # Charts are drawn anew for the width with the next answer of the gateway.
        self.js("new Promise((done) => setTimeout(done, 1200))")

    def picture(self, path: Path) -> None:
        """Write what the window shows as PNG."""
        found = self._call("Page.captureScreenshot", format="png")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def requests(self) -> list[str]:
        """URLs of everything the page asked for."""
        return [one["request"]["url"] for one in self._events("Network.requestWillBeSent")]

    def wait_answer(self, path: str) -> None:
        """Wait until an answer to a request for this path has begun."""
        deadline = time.monotonic() + PATIENCE
        while not any(one["response"]["url"].endswith(path) for one in self._events("Network.responseReceived")):
            assert time.monotonic() < deadline, path
            time.sleep(0.05)

    def problems(self) -> list[str]:
        """Exceptions, refusals of the policy, and errors on the console."""
        thrown = [json.dumps(one["exceptionDetails"])[:500] for one in self._events("Runtime.exceptionThrown")]
        logged = [one["entry"]["text"] for one in self._events("Log.entryAdded") if one["entry"]["level"] == "error"]
        return thrown + logged

    def forget(self) -> None:
        """Forget the problems so far: they were meant."""
        self.problems()
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded")
        self._browser.events = [one for one in self._browser.events if one.get("method") not in kinds]

    def accessible(self) -> list[dict[str, Any]]:
        """The tree that screen readers see, as a list."""
        return self._call("Accessibility.getFullAXTree")["nodes"]

    def close(self) -> None:
        if self._context is not None:
            self._browser.call("Target.disposeBrowserContext", browserContextId=self._context)
            return
        frames = [one["frame"] for one in self._events("Page.frameNavigated")]
        # Nothing keeps the document, and nothing stays that belongs to the tab.
        self.js("(addEventListener('beforeunload', (one) => one.stopImmediatePropagation(), true), window.name = '', 0)")
        self.js("(() => { try { sessionStorage.clear(); } catch { /* a document without an origin */ } })()")
        self._call("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank'")
        for origin in {frame["securityOrigin"] for frame in frames if frame["url"].startswith("http")}:
            self._call("Storage.clearDataForOrigin", origin=origin, storageTypes="all")
        for method in ("Network.clearBrowserCookies", "Network.clearBrowserCache", "Page.resetNavigationHistory"):
            self._call(method)
        # What was set for the page, such as its size, ends with the session.
        self._browser.call("Target.detachFromTarget", sessionId=self._session)
        self._browser.events = [one for one in self._browser.events if one.get("sessionId") != self._session]
        self._browser.tabs.append(self._target)
