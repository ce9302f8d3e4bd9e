"""What DeepSpeed's flops profiler printed: a step's floating-point operations and times.

Source: DeepSpeed profiling/flops_profiler/profiler.py. Labels differ in case between releases, and
units scale; backward and whole step are printed with ``wall_clock_breakdown`` alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from commcheck.errors import ParseError
from commcheck.lazy import dataclass, regex

TOOL: Final = "deepspeed-flops-profiler"
HEAD: Final = regex(r"^-+ DeepSpeed Flops Profiler -+\s*$", re.MULTILINE)
_STEP: Final = regex(r"^Profile Summary at step (\d+):", re.MULTILINE)
_LINE: Final = regex(
    r"^([a-zA-Z][^:\n]*?):\s+([-+]?(?:\d{1,30}(?:\.\d*)?|\.\d+)(?:e[-+]?\d{1,2})?)\s*(\S*)\s*$"
)
_SCALES: Final[Mapping[str, float]] = {
    "P": 1e15, "T": 1e12, "G": 1e9, "B": 1e9, "M": 1e6, "K": 1e3, "k": 1e3, "": 1.0,
}  # fmt: skip
_SECONDS: Final[Mapping[str, float]] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SUFFIX: Final = regex(r"(?:FLOPS|flops|MACs)$")
_FACTOR: Final = regex(r"=\s*(\d+)\s*\*\s*fwd flops per gpu / iter latency")


@dataclass(frozen=True, slots=True)
class Profile:
    """One summary. Flops are those of one rank and step; times in seconds, None: not printed.

    ``factor``: iteration's flops by the forward's as the profiler counts: 3, 4 with recomputation.
    """

    step: int
    world: int | None
    batch: int | None
    params: float | None
    fwd_flops: float
    fwd_s: float
    bwd_s: float | None
    iter_s: float | None
    factor: int


def parse(text: str) -> tuple[Profile, ...]:
    """Every summary in a log. Raises ``ParseError`` where there is none, or one is cut."""
    heads = list(HEAD.finditer(text))
    if not heads:
        raise ParseError(TOOL, text, "the line 'DeepSpeed Flops Profiler'")
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return tuple(_profile(text[head.end() : end]) for head, end in zip(heads, ends, strict=True))


def _profile(text: str) -> Profile:
    step = _STEP.search(text)
    values: dict[str, tuple[float, str]] = {}
    factor = 3
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        label = match[1].lower()
        times = _FACTOR.search(label)
        factor = int(times[1]) if times else factor
        # "fwd flops per gpu = fwd flops per gpu / fwd latency" is a rate: the first one counts.
        values.setdefault(label.partition(" =")[0], (float(match[2]), match[3]))
    flops, forward = values.get("fwd flops per gpu"), values.get("fwd latency")
    if step is None or flops is None or forward is None:
        raise ParseError(TOOL, text, "'fwd flops per GPU' and 'fwd latency'")
    seconds = _seconds(forward, text)
    if seconds is None or seconds <= 0:
        raise ParseError(TOOL, text, "a forward latency above 0")
    return Profile(
        step=int(step[1]),
        world=_whole(values.get("world size")),
        batch=_whole(values.get("batch size per gpu")),
        params=_amount(values["params per gpu"], text) if "params per gpu" in values else None,
        fwd_flops=_amount(flops, text),
        fwd_s=seconds,
        bwd_s=_seconds(values.get("bwd latency"), text),
        iter_s=_seconds(values.get("iter latency"), text),
        factor=factor,
    )


def _amount(value: tuple[float, str], text: str) -> float:
    number, unit = value
    scale = _SCALES.get(_SUFFIX.sub("", unit))
    if scale is None:
        raise ParseError(TOOL, text, f"a unit of flops, not {unit!r}")
    return number * scale


def _seconds(value: tuple[float, str] | None, text: str) -> float | None:
    if value is None:
        return None
    number, unit = value
    if unit not in _SECONDS:
        raise ParseError(TOOL, text, f"a unit of time, not {unit!r}")
    return number * _SECONDS[unit]


def _whole(value: tuple[float, str] | None) -> int | None:
    return None if value is None else int(value[0])
