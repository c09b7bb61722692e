"""Guards that search texts for patterns."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.backend.llm.guards.contract import Answer, GuardCheck, GuardFailure, GuardRefusal
from headgate.ir.policy.prompt_guard import GuardRule, PromptGuard, RegexGuard
from headgate_engine.guard.scan import Scanner
from headgate_engine.guard.search import first_rule, masked

Rules = tuple[GuardRule, ...]
Scanners = dict[Rules, Scanner]


def scanner_of(rules: Rules, scanners: Scanners) -> Scanner:
    """Return the compiled rules; guards with the same rules share them. Raises ValueError for no regular expression."""
    found = scanners.get(rules)
    if found is None:
        found = scanners[rules] = Scanner([(rule.kind, rule.text) for rule in rules])
    return found


def rule_sets(guard: PromptGuard) -> Iterator[Rules]:
    """Yield the rules of each scanner that guards need."""
    for entry in (*guard.request, *guard.response):
        if isinstance(entry.guard, RegexGuard):
            yield entry.guard.rules
    streamed = streamed_rules(guard)
    if streamed:
        yield streamed


def streamed_rules(guard: PromptGuard) -> Rules:
    """Return the rules that mask streams, those of all guards as one list."""
    if not (guard.streaming and guard.stream_masks):
        return ()
    masks = (one.guard for one in guard.response if isinstance(one.guard, RegexGuard) and one.guard.action == "mask")
    return tuple(rule for mask in masks for rule in mask.rules)


class PatternGuard:
    """Masks or refuses texts that match its rules."""

    kind = "regex"
    asks = False

    def __init__(self, guard: RegexGuard, scanners: Scanners) -> None:
        self.rules = guard.rules
        self.masks = guard.action == "mask"
        self.scanner = scanner_of(guard.rules, scanners)

    def judge(self, asked: GuardCheck) -> Answer:
        """Check texts. Raises GuardFailure."""
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
