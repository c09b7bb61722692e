"""One step of a measurement: processes of the load generator, started together, and what they found."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from headgate.capacity.errors import BenchError
from headgate.capacity.figures import Second, StepFigures, Usage, merged_seconds, told_of
from headgate.capacity.usage import TargetMeter
from headgate_engine.load.arrivals import Arrivals
from headgate_engine.load.core import LoadTarget
from headgate_engine.load.generator import Generator
from headgate_engine.load.request import LoadRequest

SLICE_NS = 100_000_000
# Seconds for all connections to open; then the run begins with those that are.
OPENING = 5.0
# Between two looks at the target, each of which costs it a moment.
LOOK_NS = 500_000_000
# Until all processes begin together.
TOGETHER_NS = 50_000_000


class LoadShape(NamedTuple):
    """How requests are sent. streams: on each connection of HTTP/2; 0: HTTP/1.1. Times are seconds."""

    connections: int
    streams: int = 0
    processes: int = 1
    reuse: bool = True
    timeout: float = 30.0
    warm_up: float = 0.0
    seconds: float = 10.0
    grace: float = 5.0


class Traffic(NamedTuple):
    """What is sent where."""

    target: LoadTarget
    requests: tuple[LoadRequest, ...]


class Tick(NamedTuple):
    """What a run tells while it goes on."""

    elapsed_s: float
    good: int
    failed: int
    p50_ns: int
    p99_ns: int
    waiting: int


def generator_of(traffic: Traffic, shape: LoadShape, connections: int) -> Generator:
    """Return a generator with some of the connections of a run."""
    return Generator(
        traffic.target, traffic.requests, connections, shape.streams, reuse=shape.reuse, timeout=shape.timeout
    )


def first_answer(traffic: Traffic, shape: LoadShape) -> None:
    """Send each request once; raises BenchError with what went wrong."""
    patience = min(shape.timeout, 10.0)
    for request in traffic.requests[:16]:
        generator = generator_of(
            Traffic(traffic.target, (request,)), shape._replace(streams=min(shape.streams, 1), timeout=patience), 1
        )
        generator.open()
        try:
            # Of an open loop with one request.
            generator.start(Arrivals(time.monotonic_ns(), 1.0, 1_000_000), grace=patience)
            while not generator.run(time.monotonic_ns() + SLICE_NS):
                pass
        finally:
            generator.close()
        if generator.ledger.errors:
            raise BenchError(f"the first request failed: {next(iter(generator.ledger.errors))}")


def run_step(
    traffic: Traffic, shape: LoadShape, rate: float, meter: TargetMeter | None, told: Callable[[Tick], None]
) -> StepFigures:
    """Send at a rate, in requests per second (0: as fast as connections allow), and return what came of it. Raises
    BenchError."""
    context = multiprocessing.get_context("fork")
    pipes: list[Connection] = []
    workers = []
    for number in range(shape.processes):
        ours, theirs = context.Pipe()
        worker = context.Process(
            target=_work, args=((theirs, [*pipes, ours]), traffic, shape, rate, number), daemon=True
        )
        worker.start()
        theirs.close()
        pipes.append(ours)
        workers.append(worker)
    try:
        return _Conductor(pipes, shape, rate, meter, told).conduct()
    finally:
        for ours, worker in zip(pipes, workers, strict=True):
            ours.close()
            if worker.is_alive():
                worker.terminate()
            worker.join()


class _Conductor:
    """Starts the processes of a step together and gathers what they tell."""

    def __init__(
        self,
        pipes: list[Connection],
        shape: LoadShape,
        rate: float,
        meter: TargetMeter | None,
        told: Callable[[Tick], None],
    ) -> None:
        self.pipes, self.shape, self.meter, self.told = pipes, shape, meter, told
        self.figures = StepFigures(rate, shape.seconds)
        self.ticks: dict[int, Tick] = {}
        self.seconds: list[Second] = []

    def conduct(self) -> StepFigures:
        for pipe in self.pipes:
            if (words := self._heard(pipe))[0] == "failed":
                raise BenchError(words[1])
        start = time.monotonic_ns() + TOGETHER_NS
        for pipe in self.pipes:
            pipe.send(start)
        measured = start + int(self.shape.warm_up * 1e9)
        end = measured + int(self.shape.seconds * 1e9)
        left = list(self.pipes)
        usage = _Watched(self.meter, measured, end)
        while left:
            for ready in wait(left, timeout=0.2):
                pipe = ready if isinstance(ready, Connection) else left[0]
                kind, value = self._heard(pipe)
                if kind == "done":
                    self.figures.add(value)
                    left.remove(pipe)
                elif kind == "second":
                    self.seconds.append(Second(**value))
                else:
                    self._tick(self.pipes.index(pipe), value)
            usage.look()
        self.figures.target = usage.found()
        self.figures.series = merged_seconds(self.seconds)
        return self.figures

    def _heard(self, pipe: Connection) -> Any:
        try:
            return pipe.recv()
        except (EOFError, OSError):
            raise BenchError("a process of the load generator has ended") from None

    def _tick(self, number: int, value: Tick) -> None:
        self.ticks[number] = value
        every = self.ticks.values()
        if len(every) == len(self.pipes):
            self.told(
                Tick(
                    min(one.elapsed_s for one in every), sum(one.good for one in every),
                    sum(one.failed for one in every),
                    max(one.p50_ns for one in every), max(one.p99_ns for one in every),
                    sum(one.waiting for one in every),
                )
            )  # fmt: skip


class _Watched:
    """What the target takes between two times."""

    def __init__(self, meter: TargetMeter | None, start_ns: int, end_ns: int) -> None:
        self.meter, self.start_ns, self.end_ns = meter, start_ns, end_ns
        self.first: Usage | None = None
        self.last: Usage | None = None
        self.first_ns = self.last_ns = 0
        self.peak = 0

    def look(self) -> None:
        now = time.monotonic_ns()
        if (
            self.meter is None
            or now < self.start_ns
            or self.last_ns >= self.end_ns
            or (now < self.end_ns and now < self.last_ns + LOOK_NS)
        ):
            return
        self.last, self.last_ns = self.meter.usage(), now
        self.peak = max(self.peak, self.last.peak_kb)
        if self.first is None:
            self.first, self.first_ns = self.last, now

    def found(self) -> Usage | None:
        """Return what it took, reckoned for the whole time from what was seen between the looks."""
        if self.first is None or self.last is None or self.last_ns <= self.first_ns:
            return None
        share = (self.end_ns - self.start_ns) / (self.last_ns - self.first_ns)
        return Usage((self.last.cpu_s - self.first.cpu_s) * share, self.peak, self.last.processes)


def _work(
    pipes: tuple[Connection, list[Connection]], traffic: Traffic, shape: LoadShape, rate: float, number: int
) -> None:
    """Be one process of a step.

    pipes: its own, and ends of the parent's, which would keep it from noticing that it is alone.
    """
    pipe, others = pipes
    for other in others:
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    connections = shape.connections // shape.processes + (number < shape.connections % shape.processes)
    try:
        generator = generator_of(traffic, shape, connections)
        generator.open()
        deadline = time.monotonic_ns() + int(OPENING * 1e9)
        while not generator.run(time.monotonic_ns() + SLICE_NS) and time.monotonic_ns() < deadline:
            pass
    except (OSError, ValueError) as error:
        pipe.send(("failed", str(error)))
        return
    pipe.send(("open", generator.ready))
    with contextlib.suppress(EOFError, BrokenPipeError):
        _load(pipe, generator, shape, rate, number)
    os._exit(0)


def _load(pipe: Connection, generator: Generator, shape: LoadShape, rate: float, number: int) -> None:
    start = pipe.recv()
    # Each process sends every n-th request.
    start += round(number * 1e9 / rate) if rate else 0
    arrivals = Arrivals(start, rate / shape.processes, int((shape.warm_up + shape.seconds) * 1e9))
    generator.start(arrivals, warm_up=shape.warm_up, grace=shape.grace)
    ledger = generator.ledger
    measured = start + int(shape.warm_up * 1e9)
    before, began, good, failed = 0.0, time.monotonic_ns(), 0, 0
    second = 0
    while True:
        over = generator.run(time.monotonic_ns() + SLICE_NS)
        now = time.monotonic_ns()
        if now < measured:
            before, began = time.process_time(), now
            continue
        elapsed = (now - measured) / 1e9
        if int(elapsed) > second or over:
            window = ledger.window
            row = Second(
                second,
                ledger.good - good,
                ledger.failed - failed,
                window.percentile(50),
                window.percentile(99),
                window.most,
            )
            pipe.send(("second", vars(row)))
            window.clear()
            good, failed, second = ledger.good, ledger.failed, int(elapsed)
        if over:
            break
        latency = ledger.latency
        pipe.send(
            (
                "tick",
                Tick(
                    elapsed,
                    ledger.good,
                    ledger.failed,
                    latency.percentile(50),
                    latency.percentile(99),
                    arrivals.waiting(now),
                ),
            )
        )
    pipe.send(("done", told_of(ledger, time.process_time() - before, max((time.monotonic_ns() - began) / 1e9, 1e-9))))


def raise_descriptor_limit(wanted: int) -> None:
    """Allow so many descriptors. Raises BenchError with what allows more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and wanted > hard:
        raise BenchError(
            f"{wanted} descriptors are needed and {hard} allowed: raise `ulimit -n`, or take fewer connections"
        )
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
