"""What says that a host is in use: processes, memory, load, traffic, allocations. Pure.

Each function reads one answer and returns why nothing may be launched, or None.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.lazy import regex
from commcheck.model import Kind, Status, Verdict

_MEMORY_MIB: Final = 1500.0
_LOAD_PERCENT: Final = 5.0
"""An idle GPU holds a few hundred MiB for the driver. Source: nvidia-smi of idle H100 and A100."""

_HBM_MB: Final = 8192.0
"""An idle 910B holds 3.4 GB of its 64. Source: npu-smi info of idle Atlas 800T A2."""

_LINE_SHARE: Final = 0.01
"""Of a port's line rate, each way. A port at rest carries less than a millionth of it."""


def apps_busy(text: str) -> Verdict | None:
    """Compute processes: ``owner, pid, MiB, name`` a line."""
    told = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",", 3)]
        if len(cells) == 4:
            owner, pid, memory, name = cells
            holds = f", {memory} MiB" if memory.isdigit() else ""
            told.append(f"{name or '-'} (pid {pid} of {owner}{holds})")
    if not told:
        return None
    more = f" and {len(told) - 2} more" if len(told) > 2 else ""
    return busy(f"a job runs on its GPUs: {', '.join(told[:2])}{more}")


def load_busy(text: str) -> Verdict | None:
    """GPUs in use by a process that is not listed: ``index, MiB, percent`` a line."""
    rows = 0
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != 3 or not cells[0].isdigit():
            continue
        rows += 1
        memory, percent = (_number(cell) for cell in cells[1:])
        if memory is not None and memory >= _MEMORY_MIB:
            return busy(
                f"GPU {cells[0]} holds {memory:,.0f} MiB and lists no process: one in another "
                "container, perhaps"
            )
        if percent is not None and percent >= _LOAD_PERCENT:
            return busy(f"GPU {cells[0]} is {percent:.0f} % busy and lists no process")
    if rows:
        return None
    return unknown("NotProvenIdle", "nvidia-smi lists no GPU to prove idle; nothing was launched")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


_NPU_ROW: Final = regex(r"\|\s*(\d+)\s+(\d+)\s*\|\s*(\d+)\s*\|\s*(\S+)\s*\|\s*(\d+)\s*\|")
_NPU_FREE: Final = regex(r"No running processes found in NPU (\d+)")
_NPU_CHIP: Final = regex(
    r"\|\s*\d+(?:\s+\d+)?\s*\|\s*(?P<bus>[0-9A-Fa-f:.]{7,})\s*\|\s*(?P<load>\d+)\s+\d+\s*/\s*\d+"
    r"\s+(?P<hbm>\d+)\s*/\s*\d+"
)
_OWNER: Final = regex(r"^owner (\d+) (.+)$", re.MULTILINE)


def npus_busy(text: str) -> Verdict | None:
    """``npu-smi info``: its processes, with their owners below; memory and load of the chips."""
    chips, mark, table = text.partition("Process id")
    if not mark:
        return unknown("NotProvenIdle", "npu-smi info shows no process table; nothing was launched")
    rows = [match for match in map(_NPU_ROW.match, table.splitlines()) if match]
    if rows:
        owners = dict(_OWNER.findall(table))
        told = ", ".join(
            f"{row[4]} (pid {row[3]} of {owners.get(row[3], 'unknown')}, NPU {row[1]}, {row[5]} MB)"
            for row in rows[:2]
        )
        more = f" and {len(rows) - 2} more" if len(rows) > 2 else ""
        return busy(f"a job runs on its NPUs: {told}{more}")
    if not _NPU_FREE.search(table):
        return unknown("NotProvenIdle", "npu-smi info names no NPU as free; nothing was launched")
    for chip in _NPU_CHIP.finditer(chips):
        if float(chip["hbm"]) >= _HBM_MB or float(chip["load"]) >= _LOAD_PERCENT:
            return busy(
                f"the NPU at {chip['bus']} is {chip['load']} % busy, holds {chip['hbm']} MB of HBM "
                "and lists no process: one in another container, perhaps"
            )
    return None


# --- the host -----------------------------------------------------------------------------------

_PORT: Final = regex(r"([01]) (\S+) (\d+(?:\.\d+)?) (\d+) (\d+)")


def nics_busy(text: str) -> Verdict | None:
    """``0|1 port Gb/s sent received`` a line, twice within a second, in words of four bytes."""
    seen: dict[tuple[str, str], tuple[float, int, int]] = {}
    for match in map(_PORT.fullmatch, text.splitlines()):
        if match is not None:
            seen[match[1], match[2]] = (float(match[3]), int(match[4]), int(match[5]))
    for (turn, port), (gbits, sent, received) in seen.items():
        later = seen.get(("1", port))
        if turn != "0" or later is None:
            continue
        for way, words in (("sends", later[1] - sent), ("receives", later[2] - received)):
            rate = words * 4 * 8 / 1e9
            if rate >= _LINE_SHARE * gbits > 0:
                return busy(f"{port} {way} {rate:.1f} Gb/s of {gbits:g} without us")
    return None


def slurm_busy(text: str) -> Verdict | None:
    """``job user`` a line: jobs that Slurm runs on the host."""
    jobs = [line.split() for line in text.splitlines() if len(line.split()) == 2]
    if not jobs:
        return None
    told = ", ".join(f"{job} of {user}" for job, user in jobs[:2])
    more = f" and {len(jobs) - 2} more" if len(jobs) > 2 else ""
    return busy(f"Slurm runs job {told}{more} on it")


def busy(reason: str) -> Verdict:
    """Nothing is launched beside somebody's work."""
    return Verdict(status=Status.SKIP, kind=Kind.BUSY, reason=f"busy: {reason}")


def unknown(name: str, reason: str) -> Verdict:
    """Nobody can say whether the host is free: nothing is launched."""
    return Verdict(status=Status.ERROR, kind=Kind.CHECK, reason=reason, error=name)
