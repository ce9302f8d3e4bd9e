"""The InfiniBand port is a full member of the training fabric's partition.

Why: Partitions decide who may talk to whom. Two limited members (bit 15 of the key is 0) cannot
talk to each other: jobs hang when they connect, while each host alone looks fine.
Reads: ``pkeys`` of the port in ``/sys/class/infiniband``. One verdict for each InfiniBand rail.
By hand: ``grep . /sys/class/infiniband/HCA/ports/1/pkeys/*``: 0xffff is the default partition, full
member; 0x7fff the same, limited.
Mend: correct the partitions at the subnet manager (``partitions.conf`` of opensm, UFM); the tables
of the ports follow by themselves.
Healthy though odd: more keys than one, and empty slots of 0x0000, are normal. Another partition
than the default is declared with ``commcheck_pkey: 0x8001``.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Check, Nothing, expects, failed, passed, reads, undecidable
from commcheck.expect import PKEY
from commcheck.formats.port_state import PORT_STATE
from commcheck.formats.rdma_port import RdmaPort
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The port."""

    port: RdmaPort = reads(PORT_STATE)


@dataclass(frozen=True, slots=True)
class Want:
    """The partition of the training fabric."""

    pkey: Wanted[int] = expects(PKEY)


FULL: Final = 0x8000
"""The bit of a full member."""

PARTITIONS = Remedy(
    command="",
    effect=Words(
        "At the subnet manager: make the port's GUID a full member of the partition; its table "
        "follows within a sweep.",
        "在子网管理器中将该端口 GUID 设为分区的完全成员；一次扫描后端口表自动更新。",
    ),
    precondition=Words(
        "The owner of the fabric agrees: partitions keep tenants apart.",
        "已获网络负责人同意：分区用于隔离租户。",
    ),
    who="network team",
)

LIMITED = Cause(
    slug="ib-pkey-limited",
    title=Words("Only a limited member", "仅为分区受限成员"),
    meaning=Words(
        "The port is a limited member of the partition: it cannot talk to other limited members.",
        "端口在该分区中仅为受限成员：受限成员之间无法通信。",
    ),
    remedies=(PARTITIONS,),
)
MISSING = Cause(
    slug="ib-pkey-missing",
    title=Words("Not in the partition", "不在该分区中"),
    meaning=Words(
        "The port's table does not hold the training fabric's key: it is in no or another "
        "partition.",
        "端口表中没有训练网络的分区键：未加入或加入了其他分区。",
    ),
    remedies=(PARTITIONS,),
)


def judge(seen: Seen, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """The wanted key, else the same partition with the other membership."""
    if seen.port.pkeys is None:
        return undecidable(f"sysfs does not tell the partition keys of {rail.label}")
    wanted = want.pkey.value
    shown = ", ".join(f"0x{key:04x}" for key in seen.port.pkeys[:8]) or "none"
    measured = {"pkeys": [f"0x{key:04x}" for key in seen.port.pkeys]}
    says = f"{rail.label} has partition keys {shown}"
    if wanted in seen.port.pkeys:
        return passed(says, measured=measured)
    limited = wanted & FULL and wanted & ~FULL in seen.port.pkeys
    reason = f"{says}, want 0x{wanted:04x}: {want.pkey.origin}"
    return failed(LIMITED if limited else MISSING, reason, measured=measured)


def only_infiniband(rail: Rail) -> str | None:
    """RoCE has VLANs instead."""
    if rail.link_layer in (None, "InfiniBand"):
        return None
    return f"{rail.label} is {rail.link_layer}, not InfiniBand"


CHECK = Check(
    id="physical.ib-pkey",
    title=Words("Full member of the partition", "分区完全成员"),
    subject=Rail,
    seen=Seen,
    want=Want,
    judge=judge,
    needs=("physical.ib-subnet-manager",),
    causes=(LIMITED, MISSING),
    platforms=frozenset({"gpu-ib"}),
    not_applicable=only_infiniband,
)
