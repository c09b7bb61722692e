"""The root: everything one configuration says."""

from __future__ import annotations

from dataclasses import field

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.backend import NamedBackend
from headgate.ir.bind import Bind
from headgate.ir.frontend import Frontend
from headgate.ir.policies import TargetedPolicy
from headgate.ir.process import ProcessSettings
from headgate.ir.service import Service, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """`digest` is equal for equal configurations read by one process, whatever their generation. `expressions`: all of
    them, each with the phase that it is evaluated in.
    """

    binds: tuple[Bind, ...]
    backends: tuple[NamedBackend, ...]
    policies: tuple[TargetedPolicy, ...]
    frontend: Frontend
    process: ProcessSettings
    digest: str
    services: tuple[Service, ...] = ()
    workloads: tuple[Workload, ...] = ()
    expressions: frozenset[tuple[str, str]] = field(default=frozenset(), compare=False)
