"""The GPU driver has reported no fault (Xid, SXid) that the host cannot go on with.

Why: The driver says in the kernel's log what went wrong with a GPU: memory, NVLink, firmware, the
bus. A job only sees a hang, a slow rank or an error of NCCL.
Reads: ``journalctl -k -b`` filtered on the host, else ``/var/log/kern.log`` or ``messages`` (both
with sudo). Where nobody may read them, the last code of each GPU as dcgm-exporter told it to the
Prometheus server of ``commcheck_prometheus_url``: enough to fail, never to pass. One verdict for
each host.
By hand: ``dmesg -T | grep -E 'Xid|SXid'``; the code's meaning: NVIDIA's Xid catalog.
Mend: by the code. Reset the GPU or reboot the drained host (48, 62, 64, 95, 109, 119, 120, 140,
143, 158), reboot it where Xid 154 says so, power cycle it (54, 79), look at NVLink (74, 136, 144
to 150, 155, fatal SXid). Twice the same within days: the vendor, with ``nvidia-bug-report.log.gz``.
Healthy though odd: most codes speak of a program, not of the GPU: 13, 31, 43, 45 come with every
crash. 63 is a repair that worked, 94 an error that was kept to one program. A fault older than a
day may have been mended since by a reset, which leaves no line: it is a warning, as is one that
dcgm-exporter no longer shows, since it began anew after a reboot. Where Xid 154 says
that nothing is left to do, what came before it is over.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from commcheck.check import (
    FLEET,
    Check,
    Nothing,
    Unread,
    failed,
    first_of,
    limit,
    passed,
    tries,
    undecidable,
    warned,
)
from commcheck.counters import length
from commcheck.errors import Unjudgeable
from commcheck.formats.kernel_xid import JOURNAL_XIDS, SYSLOG_XIDS, KernelXids, XidEvent
from commcheck.lazy import dataclass
from commcheck.metrics.codes import codes
from commcheck.metrics.reading import FAULT_METRICS, Metrics
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Words
from commcheck.xids import FAULTS, Ask, Xid, is_recovered, look_up


@dataclass(frozen=True, slots=True)
class Seen:
    """The reports of this boot."""

    log: KernelXids | Unread = tries(first_of(JOURNAL_XIDS, SYSLOG_XIDS))
    metrics: Metrics | Unread = tries(FAULT_METRICS, at=FLEET)


@dataclass(frozen=True, slots=True)
class Limits:
    """For how long a fault counts as present."""

    recent_h: float = limit(
        24.0, unit="h", source="own choice: a day; an older one may have been mended by a reset"
    )


RESET = Remedy(
    command="nvidia-smi -r",
    effect=Words(
        "Resets the GPUs (with -i one of them, where there is no NVSwitch); a reboot does the "
        "same.",
        "复位 GPU（无 NVSwitch 时可用 -i 指定）；重启等效。",
    ),
    precondition=Words(
        "The host is drained and no process holds a GPU (also monitoring); nvidia-bug-report.sh "
        "was run before.",
        "主机已排空，且无进程占用 GPU（包括监控）；事先执行 nvidia-bug-report.sh。",
    ),
)
REBOOT = Remedy(
    command="systemctl reboot",
    effect=Words(
        "Starts the system, the driver and all GPUs anew; ends everything on the host. The same "
        "again: the vendor.",
        "重新启动系统、驱动与所有 GPU；主机上的所有任务都会终止。复发：联系厂商。",
    ),
    precondition=Words(
        "The host is drained and the scheduler knows; nvidia-bug-report.sh was run before.",
        "主机已排空并通知调度器；事先执行 nvidia-bug-report.sh。",
    ),
)
POWER = Remedy(
    command="ipmitool chassis power cycle",
    effect=Words(
        "Takes power from the GPU, which a reboot does not. Gone again: reseat, then replace it.",
        "使 GPU 断电（普通重启做不到）。再次掉卡：重新插拔，之后更换。",
    ),
    precondition=Words(
        "The host is drained; nvidia-bug-report.sh was run before.",
        "主机已排空；事先执行 nvidia-bug-report.sh。",
    ),
    who="vendor",
)
LINKS = Remedy(
    command="nvidia-smi nvlink -e",
    effect=Words(
        "Shows which links count errors. Then the fabric manager's log; reset GPUs and NVSwitches "
        "together, or reboot.",
        "查看哪些链路有错误计数。再看 fabric manager 日志；GPU 与 NVSwitch 一同复位或重启。",
    ),
    precondition=Words(
        "Reading is free; for the reset: host drained, no process holds a GPU.",
        "读取无影响；复位需主机已排空，且无进程占用 GPU。",
    ),
)
REPORT = Remedy(
    command="nvidia-bug-report.sh",
    effect=Words(
        "Collects what the vendor wants. The same code again within days: field diagnosis, then a "
        "new GPU.",
        "收集厂商所需信息。数日内再次出现同一代码：进行现场诊断，之后更换 GPU。",
    ),
    precondition=Words(
        "Takes minutes; better on a drained host.", "耗时数分钟；最好在排空后执行。"
    ),
    who="vendor",
)

NEEDS_RESET = Cause(
    slug="xid-needs-reset",
    title=Words("GPU fault that needs a reset (Xid)", "GPU 故障需要复位（Xid）"),
    meaning=Words(
        "The driver reported a fault of the GPU or its firmware; programs on it hang or fail until "
        "it is reset.",
        "驱动报告了 GPU 或其固件故障；复位之前其上的程序会卡住或失败。",
    ),
    remedies=(RESET, REPORT),
)
NEEDS_REBOOT = Cause(
    slug="xid-needs-reboot",
    title=Words("GPU fault that needs a reboot (Xid)", "GPU 故障需要重启主机（Xid）"),
    meaning=Words(
        "The driver says that a fault may have left the system itself in disorder: a reset of the "
        "GPU is not enough. It need not be hardware; the report before it tells.",
        "驱动报告故障可能已使系统状态不一致：仅复位 GPU 不够。不一定是硬件问题，看其前一条报告。",
    ),
    remedies=(REBOOT, REPORT),
)
MEMORY_FAILED = Cause(
    slug="xid-memory",
    title=Words("GPU memory failed (Xid)", "GPU 显存故障（Xid）"),
    meaning=Words(
        "The driver reported memory errors that it could not keep to one program or not repair.",
        "驱动报告了无法限制在单个程序内或无法修复的显存错误。",
    ),
    remedies=(RESET, REPORT),
)
LINK_FAILED = Cause(
    slug="xid-nvlink",
    title=Words("NVLink failed (Xid or SXid)", "NVLink 故障（Xid 或 SXid）"),
    meaning=Words(
        "The driver reported errors of a link between GPUs or to an NVSwitch.",
        "驱动报告了 GPU 之间或与 NVSwitch 之间的链路错误。",
    ),
    remedies=(LINKS, REPORT),
)
OFF_THE_BUS = Cause(
    slug="xid-off-the-bus",
    title=Words("GPU needs a power cycle (Xid)", "GPU 需要断电重启（Xid）"),
    meaning=Words(
        "A GPU fell off the bus or has no power: it comes back only when the host is powered off.",
        "GPU 掉卡或供电异常：只有断电重启才能恢复。",
    ),
    remedies=(REPORT, POWER),  # what the power cycle would wipe
)
TO_WATCH = Cause(
    slug="xid-to-watch",
    title=Words("GPU reports to watch (Xid)", "需关注的 GPU 报告（Xid）"),
    meaning=Words(
        "Reports that do not stop the host now: old ones, contained errors, codes that are not "
        "known.",
        "目前不影响主机的报告：较早的、已隔离的错误或未知代码。",
    ),
    remedies=(REPORT,),
)

CAUSES: Final = {
    Ask.RESET: NEEDS_RESET,
    Ask.MEMORY: MEMORY_FAILED,
    Ask.LINK: LINK_FAILED,
    Ask.REBOOT: NEEDS_REBOOT,
    Ask.POWER_CYCLE: OFF_THE_BUS,
}
_WORST: Final = (Ask.POWER_CYCLE, Ask.REBOOT, Ask.MEMORY, Ask.LINK, Ask.RESET)

Known = tuple[XidEvent, Xid]


def judge(seen: Seen, _machine: Machine, _want: Nothing, limits: Limits) -> Verdict:
    """The worst fault of the last day; then what is to be watched."""
    if isinstance(seen.log, Unread):
        return _of_metrics(seen.log, seen.metrics, limits)
    return _of_log(seen.log, limits)


def _of_log(log: KernelXids, limits: Limits) -> Verdict:
    events = [_known(event) for event in _since_recovery(log.events)]
    measured = {"reports": [_told(event, xid) for event, xid in events[:20]]}
    faults = [each for each in events if each[1].ask in FAULTS]
    recent = [each for each in faults if _is_recent(each[0].age_s, limits)]
    for ask in _WORST:
        if mine := [each for each in recent if each[1].ask is ask]:
            others = [each for each in recent if each not in mine]
            also = f"; also {_all_told(others)}" if others else ""
            return failed(CAUSES[ask], f"{_all_told(mine)}: {ask}{also}", measured=measured)
    if faults:
        reason = f"{_all_told(faults)}: {_untimed(faults, limits)}"
        return warned(TO_WATCH, reason, measured=measured)
    if watched := [each for each in events if each[1].ask is Ask.WATCH]:
        return warned(TO_WATCH, _all_told(watched), measured=measured)
    if log.kernel is None:
        return undecidable(
            "the kernel's log does not go back to the start of the host, and has no fault",
            turn_on="keep it: Storage=persistent in journald.conf",
        )
    remark = f"; {_all_told(events)}" if events else ""
    return passed(f"no fault reported by the GPU driver since the boot{remark}", measured=measured)


def _of_metrics(log: Unread, metrics: Metrics | Unread, limits: Limits) -> Verdict:
    """What the exporter's last codes prove. It knows no code of before its own start."""
    changes = [] if isinstance(metrics, Unread) else list(codes(metrics))
    told = [(each, look_up(each.code, "", of_switch=False)) for each in changes]
    measured = {"reports": [f"Xid {each.code} on GPU {each.gpu}" for each, _ in told[:20]]}
    # What came up of late is no less true where something worse stands there from before. What is
    # shown no more may have been mended by what started the exporter anew: a reboot, a power cycle.
    fresh = [each for each in told if not each[0].over and _is_recent(each[0].ago_s, limits)]
    for shown, say in ((fresh, failed), (told, warned)):
        for ask in _WORST:
            if mine := [each for each in shown if each[1].ask is ask]:
                last, meaning = mine[0]
                ago = "before that day" if last.ago_s is None else f"{length(last.ago_s)} ago"
                ago += ", 0 since the exporter's new start" if last.over else ""
                more = f" and {len(mine) - 1} more" if len(mine) > 1 else ""
                others = [
                    f"Xid {each.code} on GPU {each.gpu} ({xid.meaning})"
                    for each, xid in shown
                    if xid.ask in FAULTS and (each, xid) not in mine
                ]
                also = f"; also {', '.join(others[:4])}" if others else ""
                also += f" and {len(others) - 4} more" if len(others) > 4 else ""
                reason = (
                    f"dcgm-exporter: Xid {last.code} on GPU {last.gpu} ({meaning.meaning}, {ago})"
                    f"{more}{also}; the host's log was not read"
                )
                return say(CAUSES[ask] if say is failed else TO_WATCH, reason, measured=measured)
    raise Unjudgeable(log.reason, log.remedy, type_name=log.error)


def _known(event: XidEvent) -> Known:
    return event, look_up(event.code, event.text, of_switch=event.of_switch)


def _since_recovery(events: Iterable[XidEvent]) -> list[XidEvent]:
    """The newest first, without what the driver later called mended on the same GPU."""
    mended: set[str] = set()
    kept = []
    for event in events:
        if not event.of_switch and event.pci in mended:
            continue
        if not event.of_switch and is_recovered(event.code, event.text):
            mended.add(event.pci)
        kept.append(event)
    return kept


def _is_recent(age_s: float | None, limits: Limits) -> bool:
    return age_s is not None and age_s <= limits.recent_h * 3600


def _untimed(faults: Iterable[Known], limits: Limits) -> str:
    if any(event.age_s is None for event, _ in faults):
        return "since the boot, and the log does not tell when"
    return f"more than {limits.recent_h:g} h ago, mended if there was a reset since"


def _all_told(events: Iterable[Known]) -> str:
    """Each code of each GPU once, with how often and how long ago the last was."""
    groups: dict[tuple[bool, int, str], list[Known]] = {}
    for event, xid in events:
        groups.setdefault((event.of_switch, event.code, event.pci), []).append((event, xid))
    told = []
    for group in list(groups.values())[:4]:
        times = f", {len(group)} times" if len(group) > 1 else ""
        told.append(_told(*group[0]) + times)
    more = f" and {len(groups) - 4} more" if len(groups) > 4 else ""
    return ", ".join(told) + more


def _told(event: XidEvent, xid: Xid) -> str:
    kind = "SXid" if event.of_switch else "Xid"
    ago = "" if event.age_s is None else f", {length(event.age_s)} ago"
    return f"{kind} {event.code} on {event.pci} ({xid.meaning}{ago})"


CHECK = Check(
    id="runtime.xid",
    title=Words("No fault reported by the GPU driver", "GPU 驱动未报告故障（Xid）"),
    subject=Machine,
    seen=Seen,
    limits=Limits,
    judge=judge,
    causes=(NEEDS_RESET, NEEDS_REBOOT, MEMORY_FAILED, LINK_FAILED, OFF_THE_BUS, TO_WATCH),
    platforms=GPUS,
)
