"""The root of the IR: one complete configuration."""

from __future__ import annotations

from dataclasses import field

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.backend import NamedBackend
from headgate.ir.bind import Bind
from headgate.ir.frontend import Frontend
from headgate.ir.hbone import Hbone
from headgate.ir.policies import TargetedPolicy
from headgate.ir.process import ProcessSettings
from headgate.ir.service import Service, Workload
from headgate.ir.virtual_keys import VirtualKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """One complete configuration.

    Equal configurations that are read by one process have equal `digest`s. `expressions` has all expressions as
    (text, phase) pairs; the phases are listed in headgate.expr.variables. `spiffe` tells whether a listener or a
    backend takes its certificate from the SPIFFE Workload API. `virtual_keys` is None where there is no
    section of them.
    """

    binds: tuple[Bind, ...]
    backends: tuple[NamedBackend, ...]
    policies: tuple[TargetedPolicy, ...]
    frontend: Frontend
    process: ProcessSettings
    digest: str
    services: tuple[Service, ...] = ()
    workloads: tuple[Workload, ...] = ()
    hbone: Hbone = Hbone()
    virtual_keys: VirtualKeys | None = None
    expressions: frozenset[tuple[str, str]] = field(default=frozenset(), compare=False)
    spiffe: bool = field(default=False, compare=False)
