"""Access-log lines in both forms."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.expr.compile import compile_expression
from headgate_drivers.log import access_line, nanoseconds_per_line
from headgate_engine.context.redact import CREDENTIALS, redacted
from headgate_engine.log.access import AccessLogFormat
from headgate_engine.log.fields import LogFields
from headgate_engine.log.keys import FIELDS, ORDER
from headgate_engine.log.request_fields import MAX_REMOVED
from headgate_engine.plan.plans import ListenerPlan, RoutePlan
from headgate_engine.route.table import RouteTable

# 2026-01-01T00:00:00.123456789Z
NOON = 1_767_225_600_123_456_789
TRACE_ID, SPAN_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
REQUEST_ID = "5f0b7e0c-1d53-4c8e-9f3e-0a1b2c3d4e5f"
FULL: dict[str, Any] = {
    "request.id": REQUEST_ID.encode(),
    "bytes.received": 7,
    "bytes.sent": 1234,
    "user_agent.original": "curl/8.0",
    "trace.id": TRACE_ID,
    "span.id": SPAN_ID,
    "upstream.duration": 3_456_789,
    "gateway": ("default", "gw"),
    "listener": "http",
    "route_rule": "rule0",
    "route": ("default", "web"),
    "endpoint": b"127.0.0.1:9000",
    "src.addr": "[::1]:50000",
    "src.identity": "spiffe://td.test/ns/shop/sa/web",
    "tls.sni": "a.test",
    "http.method": b"POST",
    "http.host": b"a.test:8080",
    "http.path": b"/v1/chat?x=1",
    "http.version": 1,
    "http.status": 200,
    "protocol": "llm",
    "gen_ai.provider.name": b"openai",
    "gen_ai.request.model": b"gpt-4o",
    "gen_ai.usage.input_tokens": 10,
    "gen_ai.usage.cache_read.input_tokens": 4,
    "gen_ai.usage.output_tokens": 20,
    "gen_ai.usage.reasoning_tokens": 0,
    "retry.attempt": 2,
    "error": "connection reset",
    "reason": "UpstreamFailure",
    "duration": 12_999_999,
}
TEXT_OF_FULL = (
    "2026-01-01T00:00:00.123456Z\tinfo\trequest "
    f"request.id={REQUEST_ID} gateway=default/gw listener=http route_rule=rule0 route=default/web "
    "endpoint=127.0.0.1:9000 src.addr=[::1]:50000 src.identity=spiffe://td.test/ns/shop/sa/web "
    "bytes.received=7 bytes.sent=1234 http.method=POST http.host=a.test http.path=/v1/chat?x=1 "
    "http.version=HTTP/1.1 http.status=200 user_agent.original=curl/8.0 tls.sni=a.test "
    f"trace.id={TRACE_ID} span.id={SPAN_ID} protocol=llm gen_ai.operation.name=chat gen_ai.provider.name=openai "
    "gen_ai.request.model=gpt-4o gen_ai.usage.input_tokens=10 gen_ai.usage.cache_read.input_tokens=4 "
    "gen_ai.usage.output_tokens=20 gen_ai.usage.reasoning_tokens=0 retry.attempt=2 "
    'error="connection reset" reason=UpstreamFailure upstream.duration=3ms duration=12ms\n'
)


# Keys of lengths of time in JSON lines.
IN_JSON = {"duration": "duration_ms", "upstream.duration": "upstream.duration_ms"}


def text(request: dict[str, Any], **options: Any) -> str:
    return access_line(AccessLogFormat("text", **options), NOON, request).decode()


def pairs(request: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Return the object of the JSON line; a key that occurs twice fails."""
    line = access_line(AccessLogFormat("json", **options), NOON, request)
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    found = json.loads(line, object_pairs_hook=list)
    assert len(dict(found)) == len(found)
    return dict(found)


def test_a_text_line_has_every_field_in_its_place() -> None:
    assert text(FULL) == TEXT_OF_FULL


def test_a_json_line_has_the_same_fields_in_the_same_order() -> None:
    found = pairs(FULL)
    assert list(found) == ["level", "time", "scope", *(IN_JSON.get(key, key) for key in FIELDS)]
    assert (found["level"], found["time"], found["scope"]) == ("info", "2026-01-01T00:00:00.123456Z", "request")
    assert (found["gateway"], found["route"]) == ("default/gw", "default/web")
    assert (found["http.status"], found["retry.attempt"], found.get("duration")) == (200, 2, None)
    assert (found["duration_ms"], found["upstream.duration_ms"]) == (12.999, 3.456), "numbers, with the unit in the key"


@pytest.mark.parametrize(
    ("status", "error", "level"),
    [(200, None, "info"), (302, None, "info"), (404, None, "warn"), (499, None, "warn"), (500, None, "error"),
     (503, "x", "error"), (0, "the client left", "warn"), (0, None, "info")],
)  # fmt: skip
def test_the_level_follows_the_status(status: int, error: str | None, level: str) -> None:
    request = {"http.status": status, "error": error}
    assert pairs(request)["level"] == level
    assert text(request).split("\t")[1] == level


def test_the_fields_are_known_in_their_order() -> None:
    places = [ORDER.index(key) for key in FIELDS]
    assert places == sorted(places)
    assert len(set(ORDER)) == len(ORDER)


def test_absent_values_are_left_out() -> None:
    assert text({}) == (
        "2026-01-01T00:00:00.123456Z\tinfo\trequest src.addr=unix bytes.received=0 "
        "bytes.sent=0 http.method=GET http.path=/ http.version=HTTP/1.1 "
        "protocol=http duration=0ms\n"
    )
    assert "gen_ai.usage" not in text({"gen_ai.provider.name": b"openai"})


@pytest.mark.parametrize(("minor", "shown"), [(0, "HTTP/1.0"), (1, "HTTP/1.1"), (20, "HTTP/2.0")])
def test_the_version_has_its_name(minor: int, shown: str) -> None:
    assert pairs({"http.version": minor})["http.version"] == shown


@pytest.mark.parametrize(
    ("host", "shown"),
    [(b"a.test", "a.test"), (b"a.test:80", "a.test"), (b"[::1]:80", "[::1]"), (b"[::1]", "[::1]"), (b"[::1", "[::1")],
)
def test_the_host_has_no_port(host: bytes, shown: str) -> None:
    assert pairs({"http.host": host})["http.host"] == shown


@pytest.mark.parametrize("key", FIELDS)
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_removed_field_is_gone_and_the_others_stay(form: str, key: str) -> None:
    if form == "json":
        whole = pairs(FULL)
        assert pairs(FULL, remove=(key,)) == {
            name: value for name, value in whole.items() if name != IN_JSON.get(key, key)
        }
    else:
        without = re.sub(rf' {re.escape(key)}=("[^"]*"|\S+)', "", TEXT_OF_FULL)
        assert text(FULL, remove=(key,)) == without != TEXT_OF_FULL


def test_added_fields_stand_where_the_order_has_them_and_unknown_ones_at_the_end() -> None:
    fields = [
        ("zone", "b"),
        ("mcp.target", "echo"),
        ("gen_ai.response.model", "m2"),
        ("mcp.method.name", "tools/call"),
        ("jwt.sub", "alice"),
        ("gen_ai.usage.cache_creation.input_tokens", 7),
        ("connection.id", 3),
        ("grpc.status", 7),
        ("gw.ai.usage.cost.total", 0.25),
        ("area", "a"),
        ("mcp.error.code", None),
    ]
    found = list(pairs({**FULL, "fields": fields}))[3:]
    known = [key for key in ORDER if key in (*FIELDS, *dict(fields)) and key != "mcp.error.code"]
    assert found == [*(IN_JSON.get(key, key) for key in known), "zone", "area"]
    keys = re.findall(r" ([a-z0-9_.]+)=", text({**FULL, "fields": fields}))
    assert keys == [*known, "zone", "area"]


def named(**texts: str) -> LogFields:
    return LogFields(None, [(key, compile_expression(text, "log")) for key, text in texts.items()])


def test_configured_fields_replace_those_of_the_engine_and_a_key_is_there_once() -> None:
    fields = named(time="'noon'", scope="'mine'", http="flatten({'path': '/x', 'host': 'b'})", route="flatten({'a': 1})")
    steps = [("transformation.failed", "x-a"), ("transformation.failed", "x-b"), ("route.a", 2), ("grpc.status", "7")]
    found = pairs({**FULL, "fields": steps}, fields=fields)
    assert list(found)[:3] == ["level", "time", "scope"]
    assert (found["level"], found["time"], found["scope"]) == ("info", "noon", "mine")
    assert (found["http.path"], found["http.host"], found["route.a"]) == ("/x", "b", 1)
    assert found["transformation.failed"] == "x-a, x-b"
    assert found["gateway"] == "default/gw"
    assert "route" not in found
    line = access_line(AccessLogFormat("json", fields=named(level="1", time="2", scope="3")), NOON, {})
    assert line.startswith(b'{"level":1,"time":2,"scope":3,"src.addr":')


def test_a_name_made_by_flatten_counts_for_its_line_only() -> None:
    form = AccessLogFormat("json", fields=named(http="flatten(request.method == 'PUT' ? {'host': 'x'} : {'a': 1})"))
    for method, wanted in ((b"PUT", "x"), (b"GET", "a.test"), (b"PUT", "x"), (b"GET", "a.test")):
        line = access_line(form, NOON, {**FULL, "http.method": method})
        found = json.loads(line, object_pairs_hook=list)
        assert len(dict(found)) == len(found)
        assert dict(found)["http.host"] == wanted


def test_added_fields_stay_in_order_without_llm_fields() -> None:
    fields = [("gen_ai.response.model", "m2"), ("mcp.target", "echo"), ("tls.sni", "a.test")]
    found = list(pairs({"protocol": "mcp", "retry.attempt": 1, "fields": fields}))
    assert found[-6:] == ["tls.sni", "protocol", "mcp.target", "gen_ai.response.model", "retry.attempt", "duration_ms"]


@pytest.mark.parametrize(
    ("value", "in_json", "in_text"),
    [
        ("a b", "a b", '"a b"'),
        (7, 7, "7"),
        (-1, -1, "-1"),
        (0.5, 0.5, "0.5"),
        (True, True, "true"),
        (float("nan"), "nan", "nan"),
        (float("inf"), "inf", "inf"),
        (b"\xff", "\ufffd", r'"\xff"'),
        ("\ud800", "\ufffd\ufffd\ufffd", r'"\xed\xa0\x80"'),
        (["x"], "['x']", "['x']"),
    ],
)
def test_an_added_value_keeps_its_type(value: object, in_json: object, in_text: str) -> None:
    assert pairs({"fields": [("k", value)]})["k"] == in_json
    assert text({"fields": [("k", value)]}).endswith(f" k={in_text}\n")


def test_an_added_key_cannot_look_like_something_else() -> None:
    assert text({"fields": [('a b="\n\\é', 1)]}).endswith(f"ms a_b{6 * chr(95)}=1\n")
    assert pairs({"fields": [('a b="\n', 1)]})['a b="\n'] == 1


def test_an_added_field_can_be_removed() -> None:
    assert "mcp.target" not in text({"fields": [("mcp.target", "x")]}, remove=("mcp.target",))


@pytest.mark.parametrize("name", CREDENTIALS)
@pytest.mark.parametrize("template", ["/p?{}={}", "/p?a=b&{}={}&c=d", "/p?a&{}={}#", "/p?token=z&{}={}"])
def test_a_credential_in_the_query_does_not_show(name: str, template: str) -> None:
    secret = "s3cr3t-" + "x" * 16
    for spelling in (name, name.upper()):
        shown = pairs({"http.path": template.format(spelling, secret).encode()})["http.path"]
        assert secret not in shown
        assert f"{spelling}=<redacted>" in shown
        assert shown.startswith("/p?")


@pytest.mark.parametrize("name", ["t%6Fken", "%74%6f%6b%65%6e", "api%5Fkey", "%61uth", "TOKE%4E", "t%256Fken"])
def test_an_encoded_name_hides_nothing(name: str) -> None:
    shown = pairs({"http.path": f"/p?a=1&{name}=s3cr3t&b%20c=d%".encode()})["http.path"]
    assert shown == f"/p?a=1&{name}=<redacted>&b%20c=d%"


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("a=1;token=s3cr3t", "a=1;token=<redacted>"),
        ("a=1;b=2;token=s3cr3t&c=3", "a=1;b=2;token=<redacted>&c=3"),
        # To servers that know no `;`, what is behind it belongs to the value.
        ("token=s3;cr3t&c=3", "token=<redacted>&c=3"),
        ("a=1;key=0123456789abcdef-s3cr3t", "a=1;key=<redacted>"),
        ("a;token=s3cr3t", "a;token=<redacted>"),
        (";;token=s3cr3t;", ";;token=<redacted>"),
        ("a=1;t%6Fken=s3cr3t", "a=1;t%6Fken=<redacted>"),
        ("a=1;b=2&c=3;d", "a=1;b=2&c=3;d"),
    ],
)
def test_a_semicolon_hides_nothing(query: str, shown: str) -> None:
    assert pairs({"http.path": f"/p?{query}".encode()})["http.path"] == f"/p?{shown}"
    assert redacted(f"/p?{query}") == f"/p?{shown}"


@pytest.mark.parametrize(
    "path",
    [
        "/p?%=x",
        "/p?%zz%=x&%41=y",
        "/p?a%3Dtoken=x",
        "/p?",
        "/p?key=value",
        "/p?token=",
        "/p?token",
        "/token=abc",
        "/p?tokens=abc",
        "/p?a=token=b",
        "/p?&&=&",
        "/p?x=1",
    ],
)
def test_an_ordinary_query_shows_as_it_was_sent(path: str) -> None:
    assert pairs({"http.path": path.encode()})["http.path"] == path
    assert f" http.path={path} " in text({"http.path": path.encode()})


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "token", "KEY", "x-api-key", ""]), st.sampled_from(["", "1", "=", "k" * 20]))
    )
)
def test_redaction_changes_nothing_but_the_values_of_credentials(parameters: list[tuple[str, str]]) -> None:
    expected = []
    for name, value in parameters:
        secret = value and (name in ("token", "x-api-key") or (name == "KEY" and len(value) >= 16))
        expected.append(f"{name}=" + ("<redacted>" if secret else value))
    path = "/p?" + "&".join(f"{name}={value}" for name, value in parameters)
    assert pairs({"http.path": path.encode()})["http.path"] == "/p?" + "&".join(expected)


RAW = st.binary(max_size=40)
WORDS = st.text(max_size=20)
REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "gateway": st.tuples(WORDS, WORDS),
        "listener": WORDS,
        "route": st.tuples(WORDS, WORDS),
        "endpoint": RAW,
        "src.addr": WORDS,
        "http.method": RAW,
        "http.path": RAW.filter(lambda raw: b"?" not in raw),
        "http.status": st.integers(100, 999),
        "gen_ai.provider.name": RAW,
        "gen_ai.request.model": RAW,
        "error": WORDS,
        "reason": WORDS,
        "duration": st.integers(0, 10**15),
        "fields": st.lists(
            st.tuples(WORDS.map(lambda key: "x." + key), WORDS), max_size=3, unique_by=lambda pair: pair[0]
        ),
    },
)


@given(REQUESTS)
def test_a_json_line_gives_every_value_back(request: dict[str, Any]) -> None:
    found = pairs(request)
    for key in ("endpoint", "http.method", "http.path"):
        if key in request:
            assert found[key] == request[key].decode("utf-8", "replace")
    for key in ("src.addr", "error", "reason", "http.status"):
        if key in request:
            assert found[key] == request[key]
    for key in ("gateway", "route"):
        if key in request:
            assert found[key] == "/".join(request[key])
    for key, value in request.get("fields", ()):
        assert found[key] == value
    assert found["duration_ms"] == request.get("duration", 0) // 1000 / 1000


@given(REQUESTS)
def test_a_text_line_has_no_raw_control_character_but_its_two_tabs_and_its_end(request: dict[str, Any]) -> None:
    line = text(request)
    head, level, rest = line.split("\t", 2)
    assert (head[-1], rest[:8]) == ("Z", "request ")
    assert level in ("info", "warn", "error")
    rest = rest[7:]
    assert rest.endswith("\n")
    assert not [char for char in rest[:-1] if ord(char) < 32 or 127 <= ord(char) < 160 or char in "\u2028\u2029"]
    outside = re.sub(r'"(\\.|[^"\\])*"', "", rest[:-1])
    assert all("=" in word for word in outside.split())


def test_names_that_are_long_together_are_written_whole() -> None:
    for size in (100, 126, 127, 128, 255, 256, 257, 2000):
        names = ("n" * size, "é" * size)
        assert pairs({"gateway": names, "route": names})["route"] == "/".join(names)


def test_a_route_of_several_listeners_and_formats_is_shown_as_each_asks() -> None:
    route = RoutePlan("web", "default", "", (), ())
    places = [ListenerPlan(name, "gw", "default", RouteTable(())) for name in ("one", "two")]
    whole, bare, form = AccessLogFormat("text"), AccessLogFormat("text", remove=("listener",)), AccessLogFormat("json")
    for _ in range(2):
        for place, name in zip(places, ("one", "two"), strict=True):
            parts = {"gateway": place, "route": route}
            assert f"request gateway=default/gw listener={name} route=default/web src.addr" in access_line(whole, NOON, parts).decode()
            assert "request gateway=default/gw route=default/web src.addr" in access_line(bare, NOON, parts).decode()
            assert json.loads(access_line(form, NOON, parts))["listener"] == name
        assert "request route=default/web src.addr" in access_line(whole, NOON, {"route": route}).decode()
        assert "request gateway=default/gw listener=one src.addr" in access_line(whole, NOON, {"gateway": places[0]}).decode()


def test_the_time_follows_the_clock_across_seconds() -> None:
    form = AccessLogFormat("text")
    for at in (
        0,
        999_999_999,
        1_000_000_000,
        NOON,
        NOON + 1_000,
        NOON - 10**9,
        951_782_399_999_999_999,
        4_102_444_800 * 10**9,
    ):
        stamp = datetime.fromtimestamp(at // 10**9, UTC).replace(microsecond=at % 10**9 // 1000)
        shown = access_line(form, at, {}).split(b"\t")[0].decode()
        assert shown == stamp.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="'xml' is no log format"):
        AccessLogFormat("xml")
    with pytest.raises(ValueError, match="at most 32"):
        AccessLogFormat(remove=map(str, range(MAX_REMOVED + 1)))
    with pytest.raises(KeyError, match="no such part"):
        access_line(AccessLogFormat(), 0, {"http.hots": b""})
    with pytest.raises(ValueError, match="rounds"):
        nanoseconds_per_line(AccessLogFormat(), {}, rounds=0)
    assert nanoseconds_per_line(AccessLogFormat(), {}, rounds=2) > 0


def test_a_field_that_cannot_be_shown_leaves_no_half_line() -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    with pytest.raises(RuntimeError, match="no text"):
        text({"fields": [("k", Broken())]})
