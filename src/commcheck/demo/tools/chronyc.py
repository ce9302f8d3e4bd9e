"""``chronyc -n tracking``: how well chrony steers the clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.parts import Answer
from commcheck.demo.state import HostState

TOOLS: Final = ("chronyc",)


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """One daemon on every host."""
    upkeep = host.upkeep
    offset = upkeep.clock_offset_s
    yield Answer(
        ("chronyc", "-n", "tracking"),
        tracking(offset, synchronized=upkeep.clock_synchronized),
    )


def tracking(offset_s: float, *, synchronized: bool) -> str:
    """A host that is fast has an offset above zero."""
    source = "C0000235 (192.0.2.53)" if synchronized else "00000000 ()"
    lines = (
        ("Reference ID", source),
        ("Stratum", "3" if synchronized else "0"),
        ("Ref time (UTC)", "Tue Mar 05 22:09:14 2024"),
        (
            "System time",
            f"{abs(offset_s):.9f} seconds {'fast' if offset_s > 0 else 'slow'} of NTP time",
        ),
        ("Last offset", "-0.000003512 seconds"),
        ("RMS offset", "0.000021034 seconds"),
        ("Frequency", "12.482 ppm slow"),
        ("Residual freq", "+0.001 ppm"),
        ("Skew", "0.019 ppm"),
        ("Root delay", "0.000312411 seconds"),
        ("Root dispersion", "0.000711003 seconds"),
        ("Update interval", "1031.4 seconds"),
        ("Leap status", "Normal" if synchronized else "Not synchronised"),
    )
    return "".join(f"{name:<16}: {value}\n" for name, value in lines)
