"""Code that a vendor ran in an earlier turn, for other vendors.

Gemini has parts for it that anybody may write. The items of other vendors have ids and containers that they alone know,
so that what ran becomes text of the assistant there. On the way through chat completions it is a part of its own:

    {"type": "ran_code", "code": ..., "output": ..., "failed": ...}
"""

from __future__ import annotations

from typing import Final

from headgate.dialect.llm.contract import Json
from headgate.dialect.llm.neutral_reply import CODE, told
from headgate_engine.llm.translate.evidence import RanTool, is_ran, is_result, messages_ran, responses_ran

KIND: Final = "ran_code"
# Code that has run, by the ids of their `server_tool_use`.
Runs = dict[str, RanTool]
# Of Gemini's `outcome`.
DONE: Final = "OUTCOME_OK"


def part_of(ran: RanTool) -> Json:
    """Return the part of chat completions for code that has run."""
    code = told(ran.input.get("code")) or told(ran.input.get("command"))
    return {"type": KIND, "code": code, "output": ran.output, "failed": ran.failed}


def of_blocks(blocks: list[Json]) -> Runs:
    """Return the code that the blocks of a message of Anthropic's tell of, by the ids of their `server_tool_use`."""
    results = {str(block.get("tool_use_id")): block for block in blocks if is_result(block.get("type"))}
    uses = [block for block in blocks if is_ran(block.get("type")) and told(block.get("name")) in CODE]
    return {use["id"]: messages_ran(use, results.get(use["id"])) for use in uses if isinstance(use.get("id"), str)}


def of_block(block: Json, runs: Runs) -> list[Json] | None:
    """Return what of_blocks() found for a block: its part, [] for a result, which its part tells; None for others."""
    if is_ran(block.get("type")):
        ran = runs.get(str(block.get("id")))
        return None if ran is None else [part_of(ran)]
    return [] if is_result(block.get("type")) and told(block.get("tool_use_id")) in runs else None


def of_item(item: Json) -> Json | None:
    """Return the part for an item of Responses; None for what is no code."""
    ran = responses_ran(item)
    return part_of(ran) if ran is not None and ran.name in CODE else None


def of_parts(code: Json | None, result: Json | None) -> Json:
    """Return the part for `executableCode` and `codeExecutionResult` of Gemini, None for a missing one."""
    found, printed = code or {}, result or {}
    failed = printed.get("outcome", DONE) != DONE
    return {"type": KIND, "code": told(found.get("code")), "output": told(printed.get("output")), "failed": failed}


def text(part: Json) -> str:
    """Return code that has run as text, with what it printed."""
    out = f"```python\n{part['code']}\n```\n"
    if part["output"]:
        out += f"{'Error' if part['failed'] else 'Output'}:\n```\n{part['output']}\n```\n"
    return out


def for_gemini(part: Json) -> list[Json]:
    """Return the parts for Gemini."""
    code = {"language": "PYTHON", "code": part["code"]}
    result = {"outcome": "OUTCOME_FAILED" if part["failed"] else DONE, "output": part["output"]}
    return [{"executableCode": code}, {"codeExecutionResult": result}]
