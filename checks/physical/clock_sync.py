"""The host's clock is in step with the others'.

Why: What happened first on which host is told by time stamps: logs of ranks, watchdogs and traces
of different hosts cannot be laid side by side where clocks differ. Leases and certificates fail.
Reads: ``chronyc -n tracking``, else ``ntpq -n -c rv``, else ``timedatectl show``. One verdict for
each host.
By hand: ``chronyc tracking``: "System time" and "Leap status"; ``timedatectl``.
Mend: start the daemon and let it reach its servers (UDP 123); ``chronyc makestep`` sets the clock
at once.
Healthy though odd: hosts on PTP run no NTP; the kernel's flag, which ``timedatectl`` shows, is set
there too. The one host that serves the time of a closed network follows itself. It never stops a
job by itself, so it is a warning.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, first_of, limit, passed, reads, warned
from commcheck.formats.clock import CHRONY, NTPQ, TIMEDATECTL, Clock
from commcheck.lazy import dataclass
from commcheck.model import GPUS, Cause, Machine, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The word of the daemon that runs, else of systemd."""

    clock: Clock = reads(first_of(CHRONY, NTPQ, TIMEDATECTL))


@dataclass(frozen=True, slots=True)
class Limits:
    """How far the clock may be off."""

    offset_ms: float = limit(
        100.0, unit="ms", source="own choice: below the length of a training step"
    )


START = Remedy(
    command="systemctl enable --now chronyd",
    effect=Words(
        "Keeps the clock in step from now on (chrony.service on Debian). Then: chronyc -n sources.",
        "从现在起保持时钟同步（Debian 为 chrony.service）。随后：chronyc -n sources。",
    ),
    precondition=Words(
        "Root; one time daemon only; its servers are reachable on UDP 123.",
        "需要 root；只保留一个时间守护进程；可访问其服务器的 UDP 123。",
    ),
)
STEP = Remedy(
    command="chronyc makestep",
    effect=Words(
        "Sets the clock at once. Programs see time jump.", "立即校正时钟，程序会看到时间跳变。"
    ),
    precondition=Words("Root; no job on the host.", "需要 root；主机无作业。"),
)

SOURCES = Remedy(
    command="chronyc -n sources",
    effect=Words(
        "Shows the servers; Reach 0 is one that does not answer (ntpq -pn for ntpd). Let the host "
        "reach them on UDP 123; it follows them again by itself.",
        "显示各时间服务器；Reach 为 0 表示无应答（ntpd 用 ntpq -pn）。"
        "放通 UDP 123 后会自动恢复同步。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)

ALONE = Cause(
    slug="clock-follows-itself",
    title=Words("Clock follows itself", "时钟以自身为参考"),
    meaning=Words(
        "The time daemon has no server that answers and takes the host's own clock for right: it "
        "says that all is well, and the host drifts away from the others.",
        "时间守护进程没有可用服务器，改以本机时钟为准：显示正常，实际却逐渐偏离其他主机。",
    ),
    remedies=(SOURCES,),
)
FREE = Cause(
    slug="clock-not-synchronized",
    title=Words("Clock is not synchronized", "时钟未同步"),
    meaning=Words(
        "No time server steers the clock of this host: it drifts away by seconds a day.",
        "没有时间服务器校准该主机：每天可能漂移数秒。",
    ),
    remedies=(START, STEP),
)
OFF = Cause(
    slug="clock-offset",
    title=Words("Clock is off", "时钟偏差过大"),
    meaning=Words(
        "The clock is steered and still far from the time servers': events of hosts cannot be put "
        "in order.",
        "时钟已受校准但仍与时间服务器相差较大：无法对多台主机的事件排序。",
    ),
    remedies=(STEP, START),
)


def judge(seen: Seen, _machine: Machine, _want: Nothing, limits: Limits) -> Verdict:
    """Steered at all, then how far off."""
    clock = seen.clock
    if not clock.is_synchronized:
        return warned(FREE, f"{clock.source} says that the clock is not synchronized")
    if clock.follows_itself:
        reason = f"{clock.source} follows the host's own clock, no server's"
        return warned(ALONE, reason)
    if clock.offset_s is None:
        return passed(f"{clock.source} says that the clock is synchronized")
    offset_ms = clock.offset_s * 1000
    measured = {"offset_ms": round(offset_ms, 6)}
    told = f"clock {abs(offset_ms):.3g} ms {'fast' if offset_ms > 0 else 'slow'} by {clock.source}"
    if abs(offset_ms) > limits.offset_ms:
        return warned(OFF, f"{told}, want at most {limits.offset_ms:g} ms", measured=measured)
    return passed(told, measured=measured)


CHECK = Check(
    id="physical.clock-sync",
    title=Words("Clock is in step", "时钟已同步"),
    subject=Machine,
    seen=Seen,
    limits=Limits,
    judge=judge,
    causes=(FREE, ALONE, OFF),
    platforms=GPUS | {"ascend"},
)
