"""The pipeline table agrees with what is built and with what the loader refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.config.load import TextSource, load
from headgate.errors import ConfigErrors
from headgate.pipeline.phases import PHASES, page

# A policy of the table that a route may carry, with a value the schema admits.
NOT_BUILT = {
    "extAuthz": "{host: 'a.test:1'}",
    "extProc": "{host: 'a.test:1'}",
    "remoteRateLimit": "{host: 'a.test:1', domain: d, descriptors: []}",
}


def test_no_policy_stands_twice_in_a_phase() -> None:
    for phase in PHASES:
        names = [entry.policy for entry in phase.entries]
        assert len(names) == len(set(names))


@pytest.mark.parametrize("policy", sorted(NOT_BUILT))
def test_a_policy_that_is_not_built_is_refused_never_ignored(policy: str) -> None:
    assert not any(entry.built for phase in PHASES for entry in phase.entries if entry.policy == policy)
    text = f"gateways: {{default: {{port: 3000}}}}\nroutes: [{{name: a, policies: {{{policy}: {NOT_BUILT[policy]}}}}}]"
    with pytest.raises(ConfigErrors) as found:
        load(TextSource(text))
    assert f"not supported yet: routes[0].policies.{policy}" in str(found.value)


def test_the_committed_page_of_the_pipeline_is_current() -> None:
    committed = Path(__file__).parents[3] / "docs/pipeline.md"
    assert committed.read_text() == page(), "run: python -m headgate.pipeline.phases > docs/pipeline.md"
