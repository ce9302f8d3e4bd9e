"""What a training step prints on simulated hosts: traces follow from GPUs, links and CPUs. Pure.

Each rank computes at its own GPU's pace, as soon as its host has launched the kernel; gradients
are reduced over the hosts' links once the last rank has them. What is trained is commcheck's own
model, or, by the site's own command, a small one as its flags say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from commcheck.demo.kineto import Kernel, Traced, lines
from commcheck.demo.paths import Path, inside, network
from commcheck.demo.state import HostState
from commcheck.lazy import dataclass

_WIDTH: Final = 4096
_PIECES: Final = 5  # kernels of one block in each pass
_COLLECTIVE_NS: Final = 4_000  # what a launch of a collective takes the CPU
_ELEMENT_BYTES: Final = 2


@dataclass(frozen=True, slots=True)
class _Model:
    """What is trained; times of one block on a whole H100."""

    blocks: int
    tensors: int  # of one block
    elements: int  # of one tensor
    forward_ns: int
    backward_ns: int
    update_ns: int


_OURS: Final = _Model(12, 1, 8 * _WIDTH * _WIDTH + 7 * _WIDTH, 3_000_000, 6_000_000, 2_000_000)
_SITES: Final = _Model(24, 12, 524_000, 33_000, 70_000, 100_000)


@dataclass(frozen=True, slots=True)
class _Plan:
    """How gradients are reduced: ``bucket`` elements at a time, beneath the backward or after it.

    ``sharded``: weights are gathered when they are needed, and no sooner.
    """

    model: _Model
    bucket: float
    overlaps: bool = True
    sharded: bool = False


def _plan(command: Sequence[str]) -> _Plan:
    if not command:
        return _Plan(_OURS, 1)
    values = dict(zip(command, (*command[1:], ""), strict=True))
    return _Plan(
        _SITES,
        bucket=float(values.get("--ddp-bucket-size", 40e6)),
        overlaps="--overlap-grad-reduce" in values or "--zero-stage" in values,
        sharded=values.get("--zero-stage") == "3",
    )


def printed(hosts: Sequence[HostState], node: int, options: Mapping[str, Any]) -> str:
    """What the script prints on ``hosts[node]``, one of all that train together.

    ``options``: as the script gets them.
    """
    here = hosts[node]
    each, steps = int(options["ranks"]), int(options["steps"])
    if not here.gpus or options["device"] != "cuda":
        return _line("problem", {"missing": "torch", "python": "/usr/bin/python3"})
    way = _way(hosts)
    if way is None or any(each > len(host.gpus) for host in hosts):
        return _line("problem", {"what": "RuntimeError: CUDA error: invalid device ordinal"})
    plan = _plan(options["command"])
    traced: list[tuple[Traced, ...]] = []
    begin = 1_000_000
    for number in range(steps):
        step = _Step(hosts, each, way, begin, seq=100_000 * number)
        traced.append(step.train(plan))
        begin = traced[-1][0].end + 50_000
    model, ranks = plan.model, each * len(hosts)
    told = {
        "torch": "2.7.1+cu128",
        "device": here.gpus[0].name,
        "backend": "nccl",
        "ranks": ranks,
        "sharding": "own" if options["command"] else options["sharding"],
        "parameters": model.blocks * model.tensors * model.elements,
        "step_ms": [(step[0].end - step[0].begin) / 1e6 for step in traced],
    }
    forward = "DeepSpeedEngine.forward" if plan.sharded else "DistributedDataParallel.forward"
    text = [_line("step", told)] if node == 0 else []
    for rank in range(node * each, (node + 1) * each):
        text += lines(rank, ranks, forward, tuple(step[rank] for step in traced))
    return "".join(text)


def _way(hosts: Sequence[HostState]) -> Path | None:
    """The slowest part of the way around all GPUs."""
    ways = [inside(host, nvls=len(hosts) == 1) for host in hosts]
    ways += [network(hosts[0], other) for other in hosts[1:]]
    found = [way for way in ways if way is not None]
    if len(found) < len(ways):
        return None
    slowest = min(found, key=lambda way: way.beta_bytes_s)
    return Path(
        max(way.alpha_s for way in found),
        slowest.beta_bytes_s,
        slowest.over,
        max(way.loss for way in found),
    )


@dataclass(slots=True)
class _Step:
    """One step of all ranks: the clocks of CPU, compute stream and communication stream."""

    hosts: Sequence[HostState]
    each: int
    way: Path
    begin: int
    seq: int
    paces: list[float] = field(init=False)
    launched: list[int] = field(init=False)  # by rank: when its CPU is free again
    at: list[int] = field(init=False)  # when its computing is over
    free: list[int] = field(init=False)  # when its collectives are
    made: list[list[Kernel]] = field(init=False)

    def __post_init__(self) -> None:
        self.paces = [gpu.pace for host in self.hosts for gpu in host.gpus[: self.each]]
        ranks = range(len(self.paces))
        self.launched = [self.begin] * len(ranks)
        self.at = [self.begin + 30_000] * len(ranks)
        self.free = list(self.at)
        self.made = [[] for _ in ranks]

    def train(self, plan: _Plan) -> tuple[Traced, ...]:
        """The step of every rank."""
        model = plan.model
        block = model.tensors * model.elements
        for _ in range(model.blocks):
            if plan.sharded:
                self._collect("_allgather_base", block, self.at)
            self._compute(model.forward_ns, self.free if plan.sharded else self.at)
        forward = list(self.launched)
        held = 0
        for number in range(model.blocks):
            if plan.sharded:
                self._collect("_allgather_base", block, self.at)
            self._compute(model.backward_ns, self.free if plan.sharded else self.at)
            for tensor in range(model.tensors):
                held += model.elements
                last = (number, tensor) == (model.blocks - 1, model.tensors - 1)
                if plan.overlaps and (held >= plan.bucket or last):
                    self._collect(_reduction(plan), held, self.at)
                    held = 0
        for size in _pieces(held, plan.bucket):
            self._collect(_reduction(plan), size, self.at)
        self._compute(model.update_ns, self.free, 1)
        end = max(self.at) + 20_000
        return tuple(
            Traced(self.begin, end, (self.begin, forward[rank]), tuple(kernels))
            for rank, kernels in enumerate(self.made)
        )

    def _compute(self, nominal_ns: int, after: Sequence[int], pieces: int = _PIECES) -> None:
        for rank, pace in enumerate(self.paces):
            launch_ns = self.hosts[rank // self.each].system.launch_ns
            ready = max(self.at[rank], after[rank])
            for _ in range(pieces):
                launched = self._launch(rank, launch_ns)
                start = max(ready, launched[1])
                ready = start + int(nominal_ns / pieces / pace)
                self.made[rank].append(Kernel(launched, start, ready))
            self.at[rank] = ready

    def _collect(self, name: str, elements: int, ready: Sequence[int]) -> None:
        """One collective: it begins on each rank when that can, and ends on all at once."""
        ranks = len(self.paces)
        rounds = 2 if name == "allreduce" else 1
        moved = rounds * elements * _ELEMENT_BYTES * (ranks - 1) / ranks
        seconds = self.way.seconds(moved) + self.way.alpha_s * (rounds * (ranks - 1) - 1)
        launches = [self._launch(rank, _COLLECTIVE_NS) for rank in range(ranks)]
        starts = [max(ready[rank], self.free[rank], launches[rank][1]) for rank in range(ranks)]
        self.free = [max(starts) + int(1e9 * seconds)] * ranks
        part = elements // ranks
        sizes = {"allreduce": (elements, elements), "_allgather_base": (part, elements)}
        size = sizes.get(name, (elements, part))
        for rank, start in enumerate(starts):
            kernel = Kernel(launches[rank], start, self.free[rank], name, size, self.seq)
            self.made[rank].append(kernel)
        self.seq += 1

    def _launch(self, rank: int, takes_ns: int) -> tuple[int, int]:
        begin = self.launched[rank]
        self.launched[rank] = begin + takes_ns
        return begin, begin + takes_ns


def _reduction(plan: _Plan) -> str:
    return "_reduce_scatter_base" if plan.sharded else "allreduce"


def _pieces(elements: int, most: float) -> list[int]:
    """What is reduced after the backward, bucket by bucket."""
    whole = max(1, int(most))
    return [min(whole, elements - at) for at in range(0, elements, whole)]


def _line(word: str, told: Mapping[str, object]) -> str:
    return f"{word} {json.dumps(told)}\n"
