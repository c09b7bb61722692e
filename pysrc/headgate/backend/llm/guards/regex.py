"""Guards that search texts for patterns."""

from __future__ import annotations

from headgate.backend.llm.guards.contract import Answer, GuardCheck, GuardFailure, GuardRefusal
from headgate.ir.policy.prompt_guard import GuardRule, RegexGuard
from headgate_engine.guard.scan import Scanner
from headgate_engine.guard.search import first_rule, masked


def scanner_of(rules: tuple[GuardRule, ...]) -> Scanner:
    """Return the compiled rules."""
    return Scanner([(rule.kind, rule.text) for rule in rules])


class PatternGuard:
    """Masks or refuses texts that match its rules."""

    kind = "regex"
    asks = False

    def __init__(self, guard: RegexGuard) -> None:
        self.rules = guard.rules
        self.masks = guard.action == "mask"
        self.scanner = scanner_of(guard.rules)

    def judge(self, asked: GuardCheck) -> Answer:
        """Check texts."""
        texts = asked.transcript.texts
        if not self.masks:
            rule = first_rule(self.scanner, texts, asked.scopes, asked.budget)
            return None if rule < 0 else GuardRefusal(rule=self.name_of(rule))
        try:
            return masked(self.scanner, texts, asked.scopes, asked.budget)
        except ValueError as error:
            raise GuardFailure(f"a mask broke the JSON of a tool's input or output: {error}") from None

    def name_of(self, rule: int) -> str:
        """Return the name of a rule for logs."""
        found = self.rules[rule]
        return found.name or (found.text if found.kind == "builtin" else f"pattern {rule + 1}")
