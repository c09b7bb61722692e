from __future__ import annotations

from pathlib import Path

from headgate.config.check import check
from headgate.config.context import Context
from headgate.config.policy.prompt_enrichment import dump, parse
from headgate.config.shape.guard import PROMPTS
from headgate.document.nodes import Report
from headgate.document.read import read
from headgate.ir.policy.prompt_guard import PromptEnrichment


def parsed(text: str) -> tuple[PromptEnrichment | None, list[str]]:
    report = Report("c")
    record = check(PROMPTS, read(text, "c", {}), report)
    found = parse(Context(report, {}, Path()), record)
    return found, [str(error) for error in report.errors]


def test_messages_keep_their_order() -> None:
    text = "{prepend: [{role: system, content: a}, {role: user, content: b}], append: [{role: user, content: c}]}"
    found, faults = parsed(text)
    assert faults == []
    assert found == PromptEnrichment(prepend=(("system", "a"), ("user", "b")), append=(("user", "c"),))
    assert dump(found) == {
        "prepend": [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}],
        "append": [{"role": "user", "content": "c"}],
    }


def test_nothing_is_nothing() -> None:
    assert parsed("{}") == (None, [])
    assert parsed("{prepend: []}") == (None, [])


def test_role_and_content_are_wanted() -> None:
    assert "missing field 'content'" in parsed("{prepend: [{role: system}]}")[1][0]
    assert "needs a role" in parsed("{append: [{role: '', content: x}]}")[1][0]
