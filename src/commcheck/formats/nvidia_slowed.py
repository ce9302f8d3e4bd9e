"""``nvidia-smi -q``: for how long each GPU's hardware held its clocks down, since the driver came.

Younger drivers count it. A reason for low clocks is gone with the load; this is not.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Output
from commcheck.errors import ParseError
from commcheck.formats import nvidia_q
from commcheck.formats.lines import only
from commcheck.formats.nvidia_q import COMMAND, TOOL, UNTOLD, GpuLines
from commcheck.lazy import dataclass, regex

_SECTION: Final = "Clocks Event Reasons Counters"
_TIME: Final = regex(r"(\d{1,18}) us")


@dataclass(frozen=True, slots=True)
class SlowedGpu:
    """One GPU: seconds below the thermal and the power brake of its hardware; None: not told."""

    index: int
    thermal_s: float | None
    brake_s: float | None


def parse(output: Output) -> tuple[SlowedGpu, ...]:
    """The GPUs, by index."""
    return tuple(
        SlowedGpu(
            at,
            _seconds(gpu, "HW Thermal Slowdown", output.text),
            _seconds(gpu, "HW Power Braking", output.text),
        )
        for at, gpu in enumerate(nvidia_q.parse(output))
    )


def _seconds(gpu: GpuLines, name: str, text: str) -> float | None:
    values = gpu.values(_SECTION, name)
    if len(values) > 1:
        raise ParseError(TOOL, text, f"{name!r} of a GPU once")
    if not values or values[0] in UNTOLD:
        return None
    return int(only(_TIME, values[0], text, TOOL)[1]) / 1e6


NVIDIA_SLOWED: Final = Reader(tool=TOOL, commands=(COMMAND,), parse=parse, varies=True)
