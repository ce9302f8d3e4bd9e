"""The NIC port's link stays up.

Why: a link that goes down for a second costs a queue pair its connection: the job hangs until the
retries are used up and dies, or every step with such a second is a slow one. The next look finds
the link up.
Reads: ``ethtool -S DEV`` at the start and the end of the visit, and what an earlier run read on
the same boot. One verdict for each Ethernet rail.
By hand: ``ethtool -S DEV | grep link_down``; when: ``dmesg -T | grep -i 'link'``.
Mend: ask for maintenance on the switch first. Else clean and reseat both ends, swap cable, then
optic; a port that flaps with good parts is the vendor's.
On the switch: its log of that port: who saw the loss first, and was the port shut by a person?
Healthy though odd: a link goes down a few times while the host and its switch start, so a small
total alone means nothing.
"""

from __future__ import annotations

from commcheck.applies import ethernet_port_owner
from commcheck.check import (
    Check,
    Explained,
    Nothing,
    Watched,
    failed,
    limit,
    passed,
    undecidable,
    warned,
    watches,
)
from commcheck.counters import WINDOW_SOURCE, Counters, errors
from commcheck.formats.ethtool_stats import ETHTOOL_STATS
from commcheck.growing import absent
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Words

COUNTERS = ("link_down_events_phy", "link_down_events")
"""mlx5 (NVIDIA mlx5 counters.rst), then bnxt_en (bnxt_ethtool.c)."""

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Seen:
    """The driver's counters."""

    counters: Watched[Counters] = watches(ETHTOOL_STATS)


@dataclass(frozen=True, slots=True)
class Limits:
    """How many are the start, and how many too many."""

    window_s: float = limit(0.0, unit="s of waiting", source=WINDOW_SOURCE)
    a_day: float = limit(5.0, unit="link losses in 24 h", source="Azure NHC check_ib_link_flapping")
    at_start: int = limit(
        5, unit="link losses since the driver was loaded", source="own default: boot of both ends"
    )
    enough_s: float = limit(
        3600.0, unit="s without a loss", source="own default: a bad link flaps within the hour"
    )


LOG = Remedy(
    command="dmesg -T | grep -i {netdev}",
    effect=Words(
        "Shows when the link went down, to compare with the switch's log (root).",
        "查看链路断开时间，并与交换机日志对照（需 root）。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)
CLEAN = Remedy(
    command="",
    effect=Words(
        "Clean and reseat both ends, then swap cable and optic. The link goes down meanwhile.",
        "清洁并重插两端，再互换线缆与光模块。期间链路中断。",
    ),
    precondition=Words(
        "Host drained; no maintenance on the switch explains the losses.",
        "主机已排空；已排除交换机维护。",
    ),
    who="vendor",
)

FLAPS = Cause(
    slug="nic-link-flaps",
    title=Words("NIC link goes down and up", "网卡链路抖动"),
    meaning=Words(
        "The link was lost while the host was running: a marginal optic or cable, or a switch "
        "port that was reset.",
        "主机运行期间链路中断：光模块或线缆临界，或交换机端口被复位。",
    ),
    remedies=(LOG, CLEAN),
)


def judge(seen: Seen, rail: Rail, _want: Nothing, limits: Limits) -> Verdict:
    """Lost while looking fails; lost since an earlier run is counted by the day."""
    found = errors(seen.counters, COUNTERS)
    if not found.there:
        return absent(rail, "link losses")
    measured = found.measured
    netdev = rail.netdev or "?"
    if found.visit.added:
        reason = f"{rail.label}: {found.visit}, want none"
        return failed(FLAPS, reason, measured=measured, netdev=netdev)
    since = found.since
    # After a restart of the driver the counter begins anew, with the losses of that start.
    if since is not None and since.added and not since.reset:
        # A window of minutes is not stretched to a day: one loss is one loss.
        a_day = since.total * DAY_S / max(since.seconds, DAY_S)
        say = failed if a_day > limits.a_day else warned
        reason = f"{rail.label}: {since}, since an earlier run; want at most {limits.a_day:g} a day"
        return say(FLAPS, reason, measured=measured, netdev=netdev)
    total = sum(found.totals.values())
    if total <= limits.at_start:
        return passed(f"{rail.label}: lost {total} times since the driver was loaded",
                      measured=measured)  # fmt: skip
    if found.longest.seconds >= limits.enough_s and not found.longest.reset:
        return passed(f"{rail.label}: {found.longest}{found.told}", measured=measured)
    return undecidable(
        f"{rail.label}: lost {total} times since the driver was loaded, and nothing tells when",
        turn_on="run again later on the same boot",
    )


CHECK = Check(
    id="physical.nic-link-flaps",
    title=Words("NIC link stays up", "网卡链路稳定"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.nic-link-up",),
    causes=(FLAPS,),
    explained_by=tuple(
        Explained(slug, "same-rail", always=False)
        for slug in ("module-fault", "module-rx-power-low", "ber-uncorrected")
    ),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=ethernet_port_owner,
)
