"""What has become of a Gateway's data plane, for the status of the Gateway."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from headgate.cluster.errors import ClusterError
from headgate.cluster.translate.conditions import Unmet

Json = dict[str, Any]
RefusedCondition = Literal["Accepted", "Programmed"]


class Deployed(NamedTuple):
    """`addresses`: as in `status.addresses` of the Gateway. `refusal`: why there is no data plane as it is wanted, and
    `condition` is the one that fails then. `generation`: of the Gateway that this is about."""

    addresses: tuple[Json, ...] = ()
    refusal: Unmet | None = None
    condition: RefusedCondition = "Accepted"
    generation: int = 0


class DeployRefused(ClusterError):
    """A data plane cannot be made of what was written; only a change of that helps."""

    def __init__(
        self, message: str, reason: str = "InvalidParameters", condition: RefusedCondition = "Accepted"
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.condition: RefusedCondition = condition


class NoUsablePort(ClusterError):
    """No listener of a Gateway has a port that can be opened. The listeners' own conditions say so already."""
