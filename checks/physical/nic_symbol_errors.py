"""The NIC port receives no damaged packets.

Why: a damaged packet is dropped where it arrives, and RoCE repeats all that followed it. A cable
that damages one packet in a million already halves the bandwidth of its rail, and every ring goes
at the pace of its slowest rail.
Reads: ``ethtool -S DEV`` at the start and the end of the visit, and what an earlier run read on
the same boot. One verdict for each Ethernet rail.
By hand: twice, ten seconds apart: ``ethtool -S DEV | grep -E 'symbol_err|crc|uncorrect'``; more:
``mlxlink -d PCI -c`` (root).
Mend: clean and reseat connector and optic at both ends, then swap the cable or optic with a good
one: the fault goes with it or stays with the port. Only then order parts.
On the switch: the error counters of the port, and its receive power and temperature.
Healthy though odd: ``rx_corrected_bits_phy`` and ``rx_err_lane_N_phy`` grow all the time at PAM4
speeds: FEC corrects them, and they are not judged here. Totals of long ago do not count.
"""

from __future__ import annotations

from commcheck.applies import ethernet_port_owner
from commcheck.check import Check, Explained, Nothing, Watched, watches
from commcheck.counters import Counters, errors
from commcheck.formats.ethtool_stats import ETHTOOL_STATS
from commcheck.growing import Limits, absent, settle
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Words

COUNTERS = (
    "rx_pcs_symbol_err_phy",
    "rx_symbol_err_phy",
    "rx_crc_errors_phy",
    "rx_pcs_symbol_err",
    "rx_fcs_err_frames",
    "rx_fec_uncorrectable_blocks",
)
"""mlx5 (NVIDIA mlx5 counters.rst), then bnxt_en (bnxt_ethtool.c)."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The driver's counters."""

    counters: Watched[Counters] = watches(ETHTOOL_STATS)


OPTICS = Remedy(
    command="ethtool -m {netdev}",
    effect=Words(
        "Shows receive power, temperature and alarms of the optic (root). A dark or hot lane names "
        "the part.",
        "查看光模块接收功率、温度与告警（需 root）；弱光或过热的通道即为故障点。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)
CLEAN = Remedy(
    command="",
    effect=Words(
        "Clean and reseat connector and optic at both ends; again: swap cable, then optic, with a "
        "good one. The link goes down meanwhile.",
        "清洁并重插两端连接器与光模块；复发则依次与正常件互换线缆、光模块。期间链路中断。",
    ),
    precondition=Words("Host drained.", "主机已排空。"),
    who="vendor",
)

DAMAGED = Cause(
    slug="nic-symbol-errors",
    title=Words("Damaged packets on a NIC port", "网卡端口收到损坏报文"),
    meaning=Words(
        "Errors that FEC could not correct: a dirty connector, a failing optic or cable.",
        "FEC 无法纠正的误码：连接器脏污，光模块或线缆故障。",
    ),
    remedies=(OPTICS, CLEAN),
)


def judge(seen: Seen, rail: Rail, _want: Nothing, limits: Limits) -> Verdict:
    """Any growth is loss."""
    found = errors(seen.counters, COUNTERS)
    if not found.there:
        return absent(rail, "damaged packets")
    return settle(found, rail, DAMAGED, limits)


CHECK = Check(
    id="physical.nic-symbol-errors",
    title=Words("No damaged packets on the NIC port", "网卡端口无损坏报文"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.nic-link-up",),
    causes=(DAMAGED,),
    explained_by=(
        Explained("module-fault", "same-rail"),
        Explained("module-rx-power-low", "same-rail"),
        Explained("fec-off", "same-rail"),
        Explained("ber-uncorrected", "same-rail"),
    ),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=ethernet_port_owner,
)
