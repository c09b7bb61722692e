"""Rate limits over the wire: exact, shared by workers, told in headers."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections import Counter

CONFIG = """
gateways:
  default: {port: {port}}
routes:
- name: limited
  policies:
    localRateLimit:
    - {maxTokens: 200, tokensPerFill: 1, fillInterval: 1h}
    directResponse: {status: 200, body: ok}
"""


def test_64_clients_and_two_workers_get_exactly_what_is_allowed(gateway) -> None:
    running = gateway(CONFIG, workers=2)
    counts: Counter[int] = Counter()
    lock = threading.Lock()

    def client() -> None:
        for _ in range(10):
            status = running.fetch(running.url)[0]
            with lock:
                counts[status] += 1

    threads = [threading.Thread(target=client) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == {200: 200, 429: 440}


def test_the_three_headers_and_the_refusal(gateway) -> None:
    running = gateway(CONFIG.replace("200", "2", 1).replace("1h", "30s"))
    seen = []
    for _ in range(3):
        try:
            answer = urllib.request.urlopen(running.url, timeout=5)
        except urllib.error.HTTPError as error:
            answer = error
        names = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")
        seen.append((answer.status, answer.read().decode(), *(answer.headers[name] for name in names)))
    assert [item[:4] for item in seen] == [
        (200, "ok", "2", "1"),
        (200, "ok", "2", "0"),
        (429, "rate limit exceeded", "2", "0"),
    ]
    assert all(28 <= int(item[4]) <= 30 for item in seen)


def test_a_limit_survives_a_reload_that_does_not_touch_it(gateway) -> None:
    text = CONFIG.replace("200", "2", 1)
    running = gateway(text)
    assert [running.fetch(running.url)[0] for _ in range(3)] == [200, 200, 429]
    running.write(text.replace("name: limited", "name: limited\n  hostnames: [127.0.0.1]"))
    running.wait_log("generation=2")
    assert running.fetch(running.url)[0] == 429
