"""What a training step printed: what ran where, and the packed trace of every rank."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from commcheck.command import Output
from commcheck.errors import ParseError, UsageError
from commcheck.lazy import dataclass, regex
from commcheck.trace.facts import JobFacts
from commcheck.trace.read import no_progress
from commcheck.trace.source import Held
from commcheck.trace.together import gathered, read_one

TOOL: Final = "train_step.py"
_TRACES: Final = regex(r"^(?:trace \d+ )?[A-Za-z0-9+/=]{40,}\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Ran:
    """What ran: times of the profiled steps on rank 0 in ms, the rest as torch says it."""

    torch: str
    device: str
    backend: str
    ranks: int
    sharding: str
    parameters: int
    step_ms: tuple[float, ...]
    flops: float | None = None  # of one rank and step, where it is commcheck's own training

    @property
    def is_own(self) -> bool:
        """True for the site's own training."""
        return self.sharding == "own"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutput:
    """``traces``: gzip bytes by rank. ``left_out``: bytes by rank of those above the cap.

    ``problem``: why there is no step; ``missing``: what was not there for it.
    """

    ran: Ran | None = None
    traces: Mapping[int, bytes]
    left_out: Mapping[int, int]
    problem: str = ""
    missing: str = ""


def parse(output: Output) -> StepOutput:
    """Read the output of ``train_step.py``.

    Raises ``ParseError`` where a line is none of its own, or a trace is not whole.
    """
    ran: Ran | None = None
    problem = missing = ""
    pieces: dict[int, list[bytes]] = {}
    whole: dict[int, int] = {}
    left_out: dict[int, int] = {}
    try:
        for line in output.stdout.splitlines():
            word, _, rest = line.partition(" ")
            if word == "step":
                ran = _ran(json.loads(rest))
            elif word == "problem":
                told = json.loads(rest)
                missing = missing or str(told.get("missing", ""))
                problem = problem or _problem(told)
            elif word == "trace":
                rank, _, piece = rest.partition(" ")
                pieces.setdefault(int(rank), []).append(base64.b64decode(piece, validate=True))
            elif word in ("traced", "left-out"):
                rank, _, size = rest.partition(" ")
                (whole if word == "traced" else left_out)[int(rank)] = int(size)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ParseError(TOOL, f"{error}: {output.stdout[:200]}") from None
    traces = {rank: b"".join(each) for rank, each in pieces.items()}
    if {rank: len(data) for rank, data in traces.items()} != whole:
        raise ParseError(TOOL, "a trace is not whole")
    return StepOutput(ran=ran, traces=traces, left_out=left_out, problem=problem, missing=missing)


def _ran(told: Mapping[str, object]) -> Ran:
    times = told["step_ms"]
    if not isinstance(times, list) or not times:
        raise ValueError("no times")
    return Ran(
        torch=str(told["torch"]),
        device=str(told["device"]),
        backend=str(told["backend"]),
        ranks=int(str(told["ranks"])),
        sharding=str(told["sharding"]),
        parameters=int(str(told["parameters"])),
        step_ms=tuple(float(each) for each in times),
        flops=float(str(told["flops"])) if "flops" in told else None,
    )


def _problem(told: Mapping[str, object]) -> str:
    if told.get("missing") == "torch":
        return f"{told.get('python', 'Python')} has no torch"
    return str(told["what"])


def joined(told: Sequence[StepOutput]) -> StepOutput:
    """What the hosts of one training printed, the one with rank 0 first."""
    return StepOutput(
        ran=next((each.ran for each in told if each.ran is not None), None),
        traces={rank: data for each in told for rank, data in each.traces.items()},
        left_out={rank: size for each in told for rank, size in each.left_out.items()},
    )


def facts_of(traces: Mapping[int, bytes]) -> tuple[JobFacts, tuple[str, ...]]:
    """What the traces say, and a line for each that could not be read.

    Raises ``ParseError`` where none could be.
    """
    done = [
        read_one(Held(f"rank{rank}.json.gz", data), (), no_progress)
        for rank, data in sorted(traces.items())
    ]
    try:
        job, problems = gathered(done)
    except UsageError as error:
        raise ParseError(TOOL, "; ".join(error.problems)) from None
    return job, tuple(problems.values())


def without_traces(text: str) -> str:
    """What a person wants to see of it."""
    return _TRACES.sub("", text)
