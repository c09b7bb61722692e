"""Expressions: what is refused when they are loaded, and what they come to."""

from __future__ import annotations

import re

import pytest

from headgate.expr.compile import MAX_CHARS, ExpressionError, check_functions, compile_expression
from headgate.expr.custom import parse_functions
from headgate_engine.context.headers import MessageHead
from headgate_engine.context.request import RequestContext, make_context
from headgate_engine.expr.program import as_field, without_literals
from headgate_engine.expr.values import EvaluationError, Redacted, Uint

REFUSED = [
    ("requst.path", "1:1: undeclared reference to 'requst', did you mean 'request'?"),
    ("request.pth", "1:1: request has no field 'pth', did you mean 'path'?"),
    ("true &&\n foo", "2:2: undeclared reference to 'foo'"),
    ("request.path + 1", "no such overload: _+_ of string, int"),
    ("!request.path", "no such overload: !_ of string"),
    ("request.path && true", "no such overload: _&&_ of string"),
    ("request.path < 5", "no such overload: _<_ of string, int"),
    ("source.port == 'a'", "no such overload: _==_ of int, string"),
    ("response.code == 200", "1:1: response has no value in the route phase (it has one in: answer, response, log)"),
    ("request.path.foo", "a string has no field 'foo'"),
    ("request.path.map(x, x)", "needs a list or a map, not a string"),
    ("size(5)", "no such overload: size() of int"),
    ("nosuch(1)", "unknown function 'nosuch'"),
    ("starstWith(1)", "unknown function"),
    ("request.path.startWith('a')", "unknown method 'startWith', did you mean 'startsWith'?"),
    ("request.path.startsWith()", "startsWith() takes 1 arguments, not 0"),
    ("has(jwt)", "has() needs a field"),
    ("jwt.a.exists(1, true)", "the variable of a macro must be a simple name"),
    ("jwt.a.exists(x, 'a')", "no such overload: exists()"),
    ("request.path.matches('(')", "invalid regular expression: missing )"),
    ("1 +", "1:4: the expression ends too early"),
    ("", "the expression ends too early"),
    ("'abc", "unexpected character"),
    ("'\\q'", "bad escape \\q"),
    ("99999999999999999999", "integer out of range"),
    ("a{b: 1}", "undeclared reference"),
    ("if", "'if' is a reserved word"),
    ("(" * 101 + "1" + ")" * 101, "nested deeper than 100"),
    ("1" + " + 1" * MAX_CHARS, "longer than 16384 characters"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[case[0][:30] for case in REFUSED])
def test_what_can_be_known_is_refused_when_it_is_loaded(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as found:
        compile_expression(text)
    assert message in str(found.value)


def context(**identity: object) -> RequestContext:
    ctx = make_context(
        "POST",
        "/v1/a?x=1&y=2&x=3",
        "api.test:8443",
        [("X-One", "1"), ("x-two", "a"), ("X-Two", "b, c"), ("cookie", "k=v; s=1"), ("authorization", "Bearer t")],
        body=b'{"model":"m","n":[1,2]}',
        secure=True,
    )
    for name, value in identity.items():
        setattr(ctx, name, value)
    return ctx


VALUES = [
    ("request.method", "POST"),
    ("request.path", "/v1/a"),
    ("request.host", "api.test"),
    ("request.scheme", "https"),
    ("request.version", "HTTP/1.1"),
    ("request.uri", "https://api.test:8443/v1/a?x=1&y=2&x=3"),
    ("request.uri == 'https://api.test:8443/v1/a?x=1&y=2&x=3'", True),
    ("request.pathAndQuery in ['/v1/a?x=1&y=2&x=3']", True),
    ("request.pathAndQuery.query('x')", ["1", "3"]),
    ("request.pathAndQuery.setQuery('x', 'a b')", "/v1/a?y=2&x=a%20b"),
    ("request.pathAndQuery.addQuery('z', '&')", "/v1/a?x=1&y=2&x=3&z=%26"),
    ("request.headers['x-ONE']", "1"),
    ("request.headers.cookie('s')", "1"),
    ("request.headers['x-two']", ["a", "b, c"]),
    ("request.headers.join()['x-two']", "a,b, c"),
    ("request.headers.split()['x-two']", ["a", "b", "c"]),
    ("request.headers.raw()['x-one']", ["1"]),
    ("request.headers.redacted().authorization", "<redacted>"),
    ("'x-one' in request.headers", True),
    ("has(request.headers.nope)", False),
    ("request.headers.map(h, h)", ["x-one", "x-two", "cookie", "authorization"]),
    ("json(request.body).n[1]", 2),
    ("string(request.body).contains('model')", True),
    ("jwt.sub", "me"),
    ("jwt.rawToken.unredacted()", "token"),
    ("string(jwt.rawToken)", "<redacted>"),
    ("has(jwt.nope)", False),
    ("default(jwt.nope, 'x')", "x"),
    ("default(nope.nope, 'x')", "x"),
    ("coalesce(jwt.nope, null, apiKey.team)", "red"),
    ("apiKey.key.unredacted()", "secret"),
    ("basicAuth.username", "ada"),
    ("metadata.a + metadata.b", "12"),
    ("default(extauthz.x, 1)", 1),
    ("jwt.groups.exists(g, g == 'admin') && request.path.startsWith('/v1')", True),
    ("variables().jwt.sub", "me"),
    ("toJson({'a': [1, 2u, 1.5, true, null, b'x', duration('90s')]})", '{"a":[1,2,1.5,true,null,"eA==","90s"]}'),
    ("jwt.groups.with(g, size(g) + size(g))", 4),
    ("{'a': 1, 'b': 2}.mapValues(v, v * 2)", {"a": 2, "b": 4}),
    ("{'a': 1, 'b': 2}.filterKeys(k, k != 'a')", {"b": 2}),
    ("{'a': 1}.merge({'a': 2, 'c': 3})", {"a": 2, "c": 3}),
    ("{'a': 1}.merge(request.headers)['x-one']", "1"),
    ("request.headers.merge({'x-one': '2'})['x-one']", "2"),
    ("request.headers.filterKeys(h, h.startsWith('x-'))", {"x-one": "1", "x-two": ["a", "b, c"]}),
    ("request.headers.join().mapValues(v, size(v))['x-two']", 6),
    ("[1, 2].contains(2u) && !['a'].contains('b') && {'a': 1}.contains('a')", True),
    ("contains('abc', 'b') && contains([1], 1) && !contains({'a': 1}, 'b')", True),
    ("request.headers.contains('X-One') && !request.headers.contains('nope')", True),
    ("[1.string(), '7'.int(), '7'.uint(), '1.5'.double(), duration('90s').string()]", ["1", 7, Uint(7), 1.5, "90s"]),
    ("jsonField(request.body, 'n')[1] + jsonField('{\"n\": 1}', 'n',)", 3),
    ("default(jsonField('{}', 'n'), 'none')", "none"),
    ("[1, 2,] + [size('ab',)] + [{'a': 3,}.a]", [1, 2, 2, 3]),
    ("[json('18446744073709551615'), json('9223372036854775807')]", [Uint(2**64 - 1), 2**63 - 1]),
    ("json('18446744073709551616')", float(2**64)),
    ("['abc'.indexOf('c', 10), 'abc'.lastIndexOf('c', 10), 'abc'.indexOf('c', 3)]", [-1, -1, -1]),
    ("['1.5s', '-1.5h', '1h30m', '1ms', '0.000000001s'].map(d, string(duration(d)))", ["1.5s", "-5400s", "5400s", "0.001s", "0.000000001s"]),
    ("duration('1.25s') == duration('1250ms') && duration('1.5h').getMinutes() == 90", True),
    ("[json('-9223372036854775808'), json('9223372036854775808')]", [-(2**63), Uint(2**63)]),
    ("json('{\"a\": {\"b\": [1, 2]}}').a.b[1]", 2),
    ("math.bitOr(b'a', b'b') == b'c' && math.bitXor(5u, 1u) == 4u && math.bitAnd(6, 3) == 2", True),
    ("request.pathAndQuery.setQuery('n', 'v')", "/v1/a?x=1&y=2&x=3&n=v"),
    ("request.pathAndQuery.setQuery('y', '9')", "/v1/a?x=1&x=3&y=9"),
    ("url.encode('a.b-c_d~e^f`g!')", "a.b-c_d~e^f`g%21"),
    ("[startsWith('abc', 'a'), endsWith('abc', 'c'), matches('abc', 'b'), contains(request.headers, 'x-one')]", [True] * 4),
    ("[size('ab'), 'ab'.size(), getHours(duration('2h')), duration('2h').getHours()]", [2, 2, 2, 2]),
    ("['a'.bytes(), 'true'.bool(), '1s'.duration() == duration('1s')]", [b"a", True, True]),
    ("request.headers.join().filterKeys(k, k == 'x-two').merge({'b': '1'}).mapValues(v, size(v))", {"x-two": 6, "b": 1}),
    ("[[1, 2,].contains(3,), {'a': 1,}.contains('b'), 'abc'.contains('c')]", [False, False, True]),
    ("base64.decode('aGk=')", b"hi"),
    ("base64.encode('hi')", "aGk="),
    ("url.encode('a b/ü')", "a%20b%2F%C3%BC"),
    ("url.decode('a%20b+c')", "a b+c"),
    ("form.decode('a=1&b=x+y&a=2')", {"a": ["1", "2"], "b": "x y"}),
    ("form.encode({'b': 'x y', 'a': ['1', '2'], 'n': null})", "a=1&a=2&b=x+y"),
    ("sha256.encode('')", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("'a-b-c'.regexReplace('(\\\\w)-(\\\\w)', '$2${1}')", "ba-c"),
    ("unvalidatedJwtPayload('e30.eyJzdWIiOiJhIn0.x').sub", "a"),
    ("cidr('10.0.0.0/8').containsIP('10.1.2.3')", True),
    ("ip('::1').isLoopback()", True),
    ("size(uuid())", 36),
    ("random() <= 1.0", True),
    ("1 == 1.0 && 1u == 1", True),
    ("request.startTime > timestamp('2020-01-01T00:00:00Z')", True),
]


@pytest.mark.parametrize(("text", "value"), VALUES, ids=[case[0][:40] for case in VALUES])
def test_values(text: str, value: object) -> None:
    ctx = context(
        jwt={"sub": "me", "groups": ["dev", "admin"]}, jwt_token=b"token", api_key={"team": "red"},
        api_key_text=b"secret", basic_user="ada", metadata={"a": "1", "b": "2"},
    )  # fmt: skip
    assert compile_expression(text).evaluate(ctx) == value


FAILS = ["math.bitAnd(1, 1u)", "math.bitOr(b'a', b'ab')", "json('1e400')", "jsonField('[1]', 'a')", "'a'.indexOf('a', -1)", "contains(1, 1)",
         "request.path.setQuery('a', 'b')", "url.encode(1)", "jwt.sub", "apiKey.key", "basicAuth.username", "metadata.x", "request.headers.nope", "json('{')", "fail('x')",
         "1 / 0", "[1][1]", "{'a': 1}.b", "int('x')", "'a'.charAt(5)", "duration('x')"]


@pytest.mark.parametrize("text", FAILS)
def test_what_has_no_value_is_an_error_and_no_test_holds(text: str) -> None:
    program = compile_expression(text)
    with pytest.raises(EvaluationError):
        program.evaluate(context())
    assert program.test(context()) == -1
    assert program.header_value(context()) is None


@pytest.mark.parametrize(("text", "result"), [("true", 1), ("false", 0), ("1", -1), ("jwt.admin", -1)])
def test_only_a_bool_is_a_verdict(text: str, result: int) -> None:
    assert compile_expression(text).test(context()) == result


@pytest.mark.parametrize("text", ["has(response.code)", "default(response.code, 0) == 200", "coalesce(response.code, 0) == 200"])
def test_a_variable_outside_its_phase_is_absent_for_macros(text: str) -> None:
    assert compile_expression(text, "route").test(context()) == 0


def test_responses_are_seen_in_their_phase() -> None:
    ctx = context()
    head = MessageHead()
    head.add("x-a", "1")
    ctx = make_context(response=head)
    ctx.response_body = b"body"
    assert compile_expression("response.headers['x-a'] + string(response.body)", "response").evaluate(ctx) == "1body"


def test_bodies_that_an_expression_reads_are_known() -> None:
    assert compile_expression("request.body == b''").needs_request_body
    assert compile_expression("request['bodyPrefix'] == b''").needs_request_body
    assert not compile_expression("request.path == ''").needs_request_body
    assert compile_expression("size(response.body) > 1", "response").needs_response_body


BOMBS = [
    "[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, "
    "[1,2,3,4,5,6,7,8,9,10].map(d, [1,2,3,4,5,6,7,8,9,10].map(e, [1,2,3,4,5,6,7,8,9,10].map(f, 1))))))",
    "'x'" + "".join(".with(v, v + v)" for _ in range(64)),
    "'" + "a" * 4000 + "'" + "".join(".replace('a', 'aaaaaaaaaa')" for _ in range(20)),
    "jwt.x.exists(a, jwt.x.exists(b, jwt.x.exists(c, false) || false) || false)",
]


@pytest.mark.parametrize("text", BOMBS, ids=lambda text: text[:20])
def test_no_expression_takes_a_worker_s_time_or_memory(text: str) -> None:
    with pytest.raises(EvaluationError, match=r"too (many|long)"):
        compile_expression(text).evaluate(context(jwt={"x": list(range(1000))}))


@pytest.mark.parametrize(("text", "shown"), [
    ('request.headers["x-n"] == "secret"', 'request.headers["x-n"] == "..."'),
    ("a.b['c']['d'] in ['s', 't']", "a.b['c']['d'] in ['...', '...']"), ("r'\\' + 's'", "r'...' + '...'"),
    (r"'a\'b' + c", "'...' + c"), ('"""a"b""" + "d"', '"""...""" + "..."'), (r"b'x' == rb'\'", "b'...' == rb'...'"),
    ("f(x)['k'] && g()[\"l\"]", "f(x)['k'] && g()[\"l\"]"), ("'open", "'...'"), ("''", "'...'"), ("1 + 2", "1 + 2")])
def test_logs_show_expressions_without_what_their_strings_hold(text: str, shown: str) -> None:
    assert without_literals(text) == shown


def test_long_chains_and_deep_brackets_are_no_trouble() -> None:
    assert compile_expression(" || ".join(["false"] * 1500 + ["true"])).test(context()) == 1
    assert compile_expression(" + ".join(["1"] * 4000)).evaluate(context()) == 4000
    assert compile_expression("(" * 100 + "1" + ")" * 100).evaluate(context()) == 1
    assert compile_expression("!" * 2000 + "true").test(context()) == 1
    assert compile_expression("jwt" + ".a" * 3000).test(context()) == -1


FIELDS = [("a", b"a"), (b"\xff", b"\xff"), (True, b"true"), (5, b"5"), (Uint(7), b"7"), (1.5, b"1.5"), (2.0, b"2"),
          (Redacted(b"s"), b"<redacted>"), ("\ud800", None),
          ("a\r\nb: c", None), ("a\0", None), ([], None), (None, None), ({}, None), (" a ", b"a")]


@pytest.mark.parametrize(("value", "field"), FIELDS, ids=str)
def test_only_what_can_stand_in_a_field_becomes_one(value: object, field: bytes | None) -> None:
    assert as_field(value) == field


def test_functions_may_call_those_defined_after_them() -> None:
    functions = parse_functions("first(x) { second(x) + third(x) }\nsecond(x) { third(x) * 2 }\nthird(x) { x + 1 }")
    assert compile_expression("first(2)", functions=functions).evaluate(context()) == 9


def test_functions_that_call_each_other_in_a_circle_are_refused() -> None:
    with pytest.raises(ValueError, match="line 1: 'a' calls itself"):
        parse_functions("a(x) { b(x) }\nb(x) { c(x) }\nc(x) { a(x) }")
    with pytest.raises(ValueError, match="line 1: 'a' calls 'd', which is not defined"):
        parse_functions("a(x) { d(x) }")


VARIADIC = """
sum(...numbers) { numbers.size() == 0 ? 0 : numbers[0] + size(numbers) }
joined(between, ...parts) { parts.join(between) }
tag(... all) { this + ':' + all.join(',') }   # called as a method
nested(...x) { joined('-', 'a', tail(x)) }
tail(x) { x[x.size() - 1] }
"""


@pytest.mark.parametrize(("text", "value"), [
    ("sum()", 0), ("sum(7, 1, 1,)", 10), ("joined('-', 'a', 'b')", "a-b"), ("joined('-')", ""), ("'x'.tag('1', '2')", "x:1,2"),
    ("nested('b', 'c')", "a-c"), ("[1, 2].map(n, sum(n, n))", [3, 4])])
def test_functions_take_any_number_of_arguments(text: str, value: object) -> None:
    assert compile_expression(text, functions=parse_functions(VARIADIC)).evaluate(context()) == value


def test_too_few_arguments_of_a_function_are_refused() -> None:
    with pytest.raises(ExpressionError, match="joined\\(\\) takes 1 to 64 arguments, not 0"):
        compile_expression("joined()", functions=parse_functions(VARIADIC))


@pytest.mark.parametrize(("text", "message"), [
    ("f(x) {\n request.pth }", "line 1: in 'f': 2:2: request has no field 'pth', did you mean 'path'?"),
    ("# one\n\nf(x) { x + y }", "line 3: in 'f': 1:6: undeclared reference to 'y'"),
    ("f() { g(1, 2) }\ng(x) { x }", "line 1: in 'f': 1:2: g() takes 1 arguments, not 2"),
    ("f() { request.path + 1 }", "line 1: in 'f': 1:2: no such overload: _+_ of string, int"),
    ("f() { g() }\ng() { request.path + 1 }", "line 1: in 'f': 1:2: in g(): no such overload: _+_ of string, int")])
def test_a_function_is_checked_although_nobody_calls_it(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        check_functions(parse_functions(text))


def test_a_fault_in_a_function_is_told_at_its_call() -> None:
    functions = parse_functions("status() { response.code }")
    check_functions(functions)
    assert compile_expression("status() == 200", "response", functions)
    with pytest.raises(ExpressionError, match=r"^1:9: in status\(\): response has no value in the route phase"):
        compile_expression("true && status() == 200", "route", functions)


SUGGESTED = [
    ("request.path.startWith('a')", "did you mean 'startsWith'?"), ("request.path.orValu(1)", None), ("[1].conatins(1)", "did you mean 'contains'?"),
    ("request.headers.cookies('a')", "did you mean 'cookie'?"), ("{'a': 1}.merg({})", "did you mean 'merge'?"), ("[1].merg([])", None),
    ("duration('1s').getHour()", "did you mean 'getHours'?"), ("request.path.getHour()", None),
    ("lowerAscii('a')", "it is a method: x.lowerAscii()"), ("'a'.uuid()", "it is a function: uuid()"),
    ("siz('a')", "did you mean 'size'?"), ("respons.code == 1", None), ("requests.path == 'a'", "did you mean 'request'?"),
    ("proxy.listner", "did you mean 'listener'?"), ("request.endTim", None), ("[1].exist(x, x == 1)", "did you mean 'exists'?"),
]


@pytest.mark.parametrize(("text", "hint"), SUGGESTED)
def test_suggestions_fit_the_type_and_the_phase(text: str, hint: str | None) -> None:
    with pytest.raises(ExpressionError) as found:
        compile_expression(text, "route")
    if hint is None:
        assert "did you mean" not in str(found.value), found.value
    else:
        assert hint in str(found.value)


def test_functions_of_the_configuration() -> None:
    functions = parse_functions("# two\ntwice(x) { x + x }\nshout(a) { this.upperAscii() + twice(a) } # last\n")
    assert compile_expression("twice(3)", functions=functions).evaluate(context()) == 6
    assert compile_expression("'a'.shout('!')", functions=functions).evaluate(context()) == "A!!"
    with pytest.raises(ExpressionError, match="takes 1 arguments"):
        compile_expression("twice(1, 2)", functions=functions)


@pytest.mark.parametrize(("text", "message"), [
    ("f(x) { f(x) }", "calls itself"), ("size(x) { x }", "defined already"), ("f(x) { x", "does not end"),
    ("f(x) { x + }", "ends too early"), ("f(x, x) { x }", "bad parameters"), ("f(...x, y) { x }", "bad parameters"),
    ("f(x, ...x) { x }", "bad parameters"), ("f(...) { 1 }", "bad parameters"), ("f(this) { 1 }", "bad parameters"), ("nonsense", "expected name"),
    ("f() { 1 } f() { 2 }", "defined already")])
def test_bad_functions_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_functions(text)
