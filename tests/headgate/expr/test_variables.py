"""Variables of expressions: all of the class's, null when absent, and each in its phases only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headgate.expr.compile import ExpressionError, compile_expression
from headgate.expr.variables import ANY, PLACES, VARIABLES, page
from headgate_engine.context.headers import MessageHead
from headgate_engine.context.request import RequestContext, make_context
from headgate_engine.expr.values import EvaluationError, NoSuchKey
from headgate_engine.expr.views import READERS

# The variables that gateways of this class have, with their fields. `?`: null in a request that does not have it.
CLASS = """
request: method uri host scheme path pathAndQuery version headers body bodyPrefix startTime endTime?
response?: code grpcStatus? headers body bodyPrefix
proxy?: bind? gateway?(namespace name) listener?(name) route?(namespace name kind rule) requestProcessingDuration? upstreamDuration?
proxy?: responseProcessingDuration?
env?: podName? namespace? gateway?
jwt?: rawToken
apiKey?: key
basicAuth?: username
llm?: streaming requestModel responseModel? provider inputTokens? providerInputTokens? inputImageTokens? inputTextTokens? inputAudioTokens?
llm?: cachedInputTokens? cacheCreationInputTokens? outputTokens? outputImageTokens? outputTextTokens? outputAudioTokens? reasoningTokens?
llm?: totalTokens? providerTotalTokens? serviceTier? timeToFirstToken? timePerOutputToken? countTokens? prompt? completion? toolCalls?
llm?: params(temperature top_p frequency_penalty presence_penalty seed max_tokens encoding_format dimensions)
llm?: cost?(total input output cacheRead cacheWrite reasoning inputAudio outputAudio)
llm?: costRates?(input output cacheRead cacheWrite reasoning inputAudio outputAudio)
llmRequest?:
source?: address port rawAddress rawPort identity?(trustDomain namespace serviceAccount) spiffeId? subjectAltNames? issuer? subject?
source?: subjectCn? certificate? unverifiedWorkload?(name namespace serviceAccount) connectHeaders?
destination?: address port hostname?
mcp?: methodName? sessionId? tool?(target name arguments result error) prompt?(target name) resource?(target name) task?(target name)
backend?: name type protocol
extauthz?:
extproc?:
mcpGuardrails?:
metadata?:
"""


def walk() -> list[tuple[str, bool]]:
    """All paths, and whether each may be null although what it is a member of is not."""
    found: dict[str, bool] = {}
    for line in CLASS.strip().splitlines():
        name, _, fields = line.partition(":")
        found[name.removesuffix("?")] = name.endswith("?")
        for field, optional, members in re.findall(r"(\w+)(\??)(?:\(([\w ]*)\))?", fields):
            path = f"{name.removesuffix('?')}.{field}"
            found[path] = bool(optional)
            found |= {f"{path}.{member}": True for member in members.split()}
    return list(found.items())


PATHS = walk()
NAMES = [path for path, _ in PATHS if "." not in path]
# What a request has in any case, even one that was made of nothing.
THERE = {"request", *(f"request.{name}" for name in VARIABLES["request"].fields or () if name != "endTime")}
# Variables that have a value in every request.
PRESENT = {"request", "proxy", "env", "source", "destination"}
# Values where the state of a request is filled.
FILLED = {
    "jwt": {"sub": "me"}, "jwt.rawToken": "token", "apiKey": {"team": "red"}, "apiKey.key": "secret", "basicAuth": {"username": "ada"},
    "basicAuth.username": "ada", "metadata": {"a": 1}, "extauthz": {"x": 1}, "extproc": {"y": 2}, "mcpGuardrails": {"z": 3},
    "llmRequest": {"model": "m"}, "mcp.methodName": "tools/call", "mcp.sessionId": None, "mcp.tool": {"target": "t", "name": "n"},
    "mcp.tool.name": "n", "response.grpcStatus": 7,
}  # fmt: skip


def filled() -> RequestContext:
    head = MessageHead()
    head.add("grpc-status", "7")
    ctx = make_context(response=head)
    ctx.jwt, ctx.jwt_token, ctx.api_key, ctx.api_key_text = {"sub": "me"}, b"token", {"team": "red"}, b"secret"
    ctx.basic_user, ctx.metadata = "ada", {"a": 1}
    ctx.dynamic = {
        "extauthz": {"x": 1}, "extproc": {"y": 2}, "mcpGuardrails": {"z": 3}, "llmRequest": {"model": "m"},
        "mcp": {"methodName": "tools/call", "tool": {"target": "t", "name": "n"}},
    }  # fmt: skip
    return ctx


def test_the_table_has_the_variables_of_the_class_and_no_others() -> None:
    assert set(NAMES) == set(VARIABLES)
    for name, variable in VARIABLES.items():
        wanted = {path.split(".")[1] for path, _ in PATHS if path.startswith(f"{name}.")}
        assert wanted == set(variable.fields) if variable.fields is not None else wanted <= {"rawToken", "key"}, name


def absent(path: str) -> bool:
    """Whether a path is null or not there in a request that was made of nothing."""
    try:
        return compile_expression(path, ANY).evaluate(make_context()) is None
    except NoSuchKey:
        return True


@pytest.mark.parametrize(("path", "optional"), PATHS)
def test_what_is_absent_is_null(path: str, optional: bool) -> None:
    ctx = make_context()
    holder = path.rpartition(".")[0]
    program = compile_expression(path, ANY)
    if path in THERE:
        assert program.evaluate(ctx) is not None
        return
    if holder and holder not in PRESENT and absent(holder):
        with pytest.raises(NoSuchKey, match="no such key: "):
            program.evaluate(ctx)
    else:
        assert program.evaluate(ctx) is None, "absent means null"
        assert compile_expression(f"{path} == null", ANY).test(ctx) == 1
        assert optional or holder in PRESENT
    assert compile_expression(f"{path} != null", ANY).test(ctx) != 1
    assert compile_expression(f"default({path}, 'none')", ANY).evaluate(ctx) == "none"
    assert compile_expression(f"coalesce({path}, 'none')", ANY).evaluate(ctx) == "none"
    if path.count(".") == 1:
        assert compile_expression(f"has({path})", ANY).test(ctx) == 0


@pytest.mark.parametrize(("path", "value"), FILLED.items())
def test_what_is_there_has_its_value(path: str, value: object) -> None:
    found = compile_expression(path, ANY).evaluate(filled())
    assert (found.reveal() if hasattr(found, "reveal") else found) == value
    if value is not None:
        assert compile_expression(f"{path} != null", ANY).test(filled()) == 1


@pytest.mark.parametrize("phase", PLACES)
def test_a_variable_is_refused_outside_its_phases(phase: str) -> None:
    for path, _ in PATHS:
        name, _, rest = path.partition(".")
        field = rest.partition(".")[0]
        variable = VARIABLES[name]
        if phase in variable.phases_of(field):
            compile_expression(path, phase)
            continue
        refused = f"{name}.{field}" if phase in variable.phases else name
        with pytest.raises(ExpressionError) as found:
            compile_expression(f"'a' == 'b' || {path} == 1", phase)
        place, told = str(found.value).split(": ", 1)
        assert re.fullmatch(r"1:(1[4-9]|[2-9]\d)", place), "the place is that of the variable"
        assert told.startswith((f"{refused} has no value in the {phase} phase (it has one in: ", f"{refused} cannot be used in the log"))
        for text in (f"default({path}, 1) == 1", f"coalesce({path}, 1) == 1"):
            assert compile_expression(text, phase).test(make_context()) == 1, "macros handle what is not there"
        if path.count(".") == 1:
            assert compile_expression(f"has({path})", phase).test(make_context()) == 0


def test_phases_are_ordered_by_what_they_know() -> None:
    for earlier, later in (("gateway", "route"), ("route", "backend"), ("backend", "answer"), ("answer", "response")):
        for variable in VARIABLES.values():
            for field in ("", *(variable.fields or ())):
                phases = variable.phases_of(field)
                assert later in phases or earlier not in phases, (field, earlier, later)


def test_all_variables_together_are_of_their_phase() -> None:
    found = compile_expression("variables()", "gateway").evaluate(filled())
    assert "response" not in found
    assert "backend" not in found
    assert found["basicAuth"] == {"username": "ada"}
    assert compile_expression("variables().response.grpcStatus", "log").evaluate(filled()) == 7


@pytest.mark.parametrize("name", sorted({field for variable in VARIABLES.values() for field in variable.nullable}))
def test_what_may_be_null_has_a_reader(name: str) -> None:
    for variable, row in VARIABLES.items():
        if name in row.nullable:
            assert f"{variable}.{name}" in READERS


def test_the_page_is_current() -> None:
    assert (Path(__file__).parents[3] / "docs/expressions.md").read_text() == page()


def test_a_member_of_null_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="no such key: sub"):
        compile_expression("jwt.sub", "route").evaluate(make_context())
