"""What the policies of one worker are compiled with."""

from __future__ import annotations

from dataclasses import dataclass

from headgate_engine.shared.segment import Segment


@dataclass(slots=True)
class Environment:
    """`segment`: shared memory of all workers. `max_body`: bytes of a body that steps may wait for."""

    segment: Segment
    max_body: int
