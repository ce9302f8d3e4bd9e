"""No NVLink had to send again, retrain or drop what it carried.

Why: NVLink sends a damaged packet again by itself. A link that does so all the time is slow, and
the next thing it does is fail: Xid 74, and the job ends.
Reads: ``nvidia-smi nvlink -e``: counts since the GPU was last reset. One verdict for each host.
By hand: ``nvidia-smi nvlink -e | grep -v ': 0'``; ``nvidia-smi nvlink -s`` for links that are gone.
Mend: on a drained host reset the GPUs, run a job, look again: counters that grow anew belong to a
GPU, baseboard or bridge that the vendor exchanges.
Healthy though odd: a few errors since the last reset are what the resending is for; what was
corrected on the way (FEC of Blackwell) is not judged. Blackwell counts a recovery that succeeded
apart: a few are let pass. The totals do not say when, so this is a warning; links that are gone are
another check's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from commcheck.check import (
    Check,
    Nothing,
    limit,
    not_applicable,
    passed,
    reads,
    undecidable,
    warned,
)
from commcheck.formats.nvlink_errors import NVLINK_ERRORS, LinkErrors
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Words
from commcheck.report.counts import many


@dataclass(frozen=True, slots=True)
class Seen:
    """The counters of every link."""

    links: tuple[LinkErrors, ...] = reads(NVLINK_ERRORS)


@dataclass(frozen=True, slots=True)
class Limits:
    """How many errors of one link are let pass."""

    resent: int = limit(
        100,
        unit="packets of a link since the GPU's reset",
        source="own choice: resending a few is what the link is made for",
    )
    recoveries: int = limit(
        0, unit="retrainings of a link since the GPU's reset", source="DCGM health watch: any"
    )
    recovered: int = limit(
        3,
        unit="recoveries of a link since the GPU's reset",
        source="own choice: healthy links count none, a switch that restarts may cause one "
        "(https://github.com/marin-community/marin/issues/9086: 505, and days later it was down)",
    )


RESENT: Final = ("Replay Errors", "CRC Errors", "Effective Errors")
RETRAINED: Final = ("Recovery Errors", "Link recovery failed events")
"""The last of each are Blackwell's: what correction on the way did not mend."""
RECOVERED: Final = ("Link recovery successful events",)
"""Blackwell's, too: each holds up what crosses the link for tens of milliseconds or more."""

RESET = Remedy(
    command="nvidia-smi nvlink -e",
    effect=Words(
        "Shows all counters. After a reset of the GPUs (nvidia-smi -r) and a job they show what is "
        "new.",
        "查看所有计数。复位 GPU（nvidia-smi -r）并运行作业后，可见新增错误。",
    ),
    precondition=Words(
        "Reading is free; for the reset: host drained, no process holds a GPU.",
        "读取无影响；复位需主机已排空，且无进程占用 GPU。",
    ),
)
REPLACE = Remedy(
    command="nvidia-bug-report.sh",
    effect=Words(
        "Collects what the vendor wants: the same link again after a reset is hardware.",
        "收集厂商所需信息：复位后同一链路再次出错即为硬件问题。",
    ),
    precondition=Words(
        "Takes minutes; better on a drained host.", "耗时数分钟；最好在排空后执行。"
    ),
    who="vendor",
)

NOISY = Cause(
    slug="nvlink-errors",
    title=Words("NVLink has errors", "NVLink 有错误计数"),
    meaning=Words(
        "A link sent packets again or was trained anew since the GPU's last reset.",
        "自 GPU 上次复位以来，链路发生重传或重新训练。",
    ),
    remedies=(RESET, REPLACE),
)


def judge(seen: Seen, _machine: Machine, _want: Nothing, limits: Limits) -> Verdict:
    """Each link by its worst counter."""
    links = seen.links
    if not links:
        return not_applicable("no NVLink on the GPUs of this host")
    resent = {_named(link): _sum(link, RESENT) for link in links}
    retrained = {_named(link): _sum(link, RETRAINED) for link in links}
    recovered = {_named(link): _sum(link, RECOVERED) for link in links}
    measured = {
        "resent": {name: count for name, count in resent.items() if count},
        "retrained": {name: count for name, count in retrained.items() if count},
        "recovered": {name: count for name, count in recovered.items() if count},
    }
    noisy = {
        name: f"{retrained[name] or 0} retrained, {resent[name] or 0} resent"
        + (f", {recovered[name]} recovered" if recovered[name] else "")
        for name in resent
        if (retrained[name] or 0) > limits.recoveries
        or (resent[name] or 0) > limits.resent
        or (recovered[name] or 0) > limits.recovered
    }
    if noisy:
        told = ", ".join(f"{name} {count}" for name, count in list(noisy.items())[:4])
        more = f" and {len(noisy) - 4} more" if len(noisy) > 4 else ""
        reason = f"NVLink errors since the GPU's reset: {told}{more}"
        return warned(NOISY, reason, measured=measured)
    if all(resent[name] is None and retrained[name] is None for name in resent):
        return undecidable("the links count nothing that commcheck knows")
    remark = (
        f"; {sum(filter(None, resent.values()))} packets resent" if any(resent.values()) else ""
    )
    return passed(
        f"{many(len(links), 'NVLink')} without errors that matter{remark}", measured=measured
    )


def _named(link: LinkErrors) -> str:
    return f"gpu{link.gpu} link {link.link}"


def _sum(link: LinkErrors, names: Sequence[str]) -> int | None:
    """The sum over the counters that the link has; None: it has none of them."""
    counts = [count for name in names if (count := link.get(name)) is not None]
    return sum(counts) if counts else None


CHECK = Check(
    id="physical.nvlink-errors",
    title=Words("NVLinks without errors", "NVLink 无错误"),
    subject=Machine,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.gpu-driver",),
    causes=(NOISY,),
    platforms=GPUS,
)
