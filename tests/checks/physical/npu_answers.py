"""A host of two NPUs, and what ``hccn_tool`` says of them in the form of the one script."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from commcheck.check import Span, Watched
from commcheck.counters import Counters
from commcheck.formats.hccn import PerNpu
from commcheck.growing import Limits
from commcheck.model import Accelerator, Machine

RECORDED = {
    path.stem: path.read_text()
    for path in (Path(__file__).parents[2] / "recorded" / "hccn_tool").glob("*.txt")
}
NPU = Accelerator(0, "ascend")
TWO = Machine("npu-01", "ascend", accelerators=(NPU, Accelerator(1, "ascend")))
ONE = Machine("npu-01", "ascend", accelerators=(NPU,))
LIMITS = Limits()
BUSY = "hccn_tool is busy, please try again."


def told(*answers: str) -> tuple[str, int]:
    """Each NPU's answer: a text, or the name of a recording."""
    texts = [RECORDED.get(each, each).rstrip("\n") for each in answers]
    parts = (f"[npu {npu} rc 0]\n{text}\n" for npu, text in enumerate(texts))
    return "".join(parts) + "[end]\n", 0


def counted(
    last: Mapping[str, int], added: Mapping[str, int] = {}, seconds: float = 10.0
) -> Watched[PerNpu[Counters]]:
    """Readings of NPU 0 that end with ``last``."""
    first = {name: value - added.get(name, 0) for name, value in last.items()}
    both = [PerNpu(((0, Counters(values)),)) for values in (first, last)]
    return Watched(Span(both[0], both[1], seconds))
