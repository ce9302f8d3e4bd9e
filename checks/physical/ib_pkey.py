"""The InfiniBand port is a full member of the training fabric's partition, in the slot NCCL uses.

Why: Partitions decide who may talk to whom. Two limited members (bit 15 of the key is 0) cannot
talk to each other: jobs hang when they connect, while each host alone looks fine. NCCL takes the
key by its slot in the port's table, slot 0 unless ``NCCL_IB_PKEY`` names another.
Reads: ``pkeys`` of the port in ``/sys/class/infiniband``; ``/etc/nccl.conf``. One verdict for each
InfiniBand rail.
By hand: ``grep . /sys/class/infiniband/HCA/ports/1/pkeys/*``: 0xffff is the default partition, full
member; 0x7fff the same, limited.
Mend: correct the partitions at the subnet manager (``partitions.conf`` of opensm, UFM); the tables
of the ports follow by themselves.
Healthy though odd: more keys than one, and empty slots of 0x0000, are normal. Where tenants share a
fabric (Azure, UFM), 0x7fff beside a full key like 0x800b is what keeps them apart; which of them
has to be there is declared with ``commcheck_pkey: 0x8001``. A slot that a job names in its own
environment is not seen here.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import (
    Check,
    Nothing,
    Unread,
    expects,
    failed,
    passed,
    reads,
    tries,
    undecidable,
    warned,
)
from commcheck.expect import PKEY
from commcheck.formats.nccl_conf import NCCL_CONF, PATH
from commcheck.formats.port_state import PORT_STATE
from commcheck.formats.rdma_port import RdmaPort
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The port, and what every job of the host begins with."""

    port: RdmaPort = reads(PORT_STATE)
    conf: tuple[tuple[str, str], ...] | Unread = tries(NCCL_CONF)


@dataclass(frozen=True, slots=True)
class Want:
    """The partition of the training fabric, where it is declared."""

    pkey: Wanted[int | None] = expects(PKEY)


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
        "The port is only a limited member: it cannot talk to other limited members.",
        "端口仅为分区受限成员：受限成员之间无法通信。",
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
SLOT = Cause(
    slug="ib-pkey-slot",
    title=Words(
        "Full key in a slot that NCCL does not use", "完全成员的分区键不在 NCCL 使用的槽位"
    ),
    meaning=Words(
        "The port is a full member of a partition, but the slot that NCCL uses holds a limited key "
        "or none: jobs hang when they connect, unless each sets NCCL_IB_PKEY itself.",
        "端口是某分区的完全成员，但 NCCL 使用的槽位是受限键或为空：除非作业自行设置 "
        "NCCL_IB_PKEY，否则建立连接时会挂起。",
    ),
    remedies=(
        Remedy(
            command="NCCL_IB_PKEY={slot}",
            effect=Words(
                "In the job's environment or /etc/nccl.conf: the number is the key's slot, not the "
                "key. Jobs that start from now on use it.",
                "写入作业环境变量或 /etc/nccl.conf：填槽位号而非键值。新启动的作业生效。",
            ),
            precondition=Words(
                "The key is in the same slot on all rails and hosts, and is the job's partition.",
                "所有轨与主机的该键处于同一槽位，且属于作业所用分区。",
            ),
        ),
    ),
)


def judge(seen: Seen, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """The declared key or a full one, else the membership that is lacking; then the slot."""
    if seen.port.pkeys is None:
        return undecidable(f"sysfs does not tell the partition keys of {rail.label}")
    wanted, keys = want.pkey.value, dict(seen.port.pkeys)
    held = [f"0x{key:04x}" for key in keys.values()]
    measured = {"pkeys": held}
    says = f"{rail.label} has partition keys {', '.join(held[:8]) or 'none'}"
    if wanted is None:
        good = [slot for slot, key in keys.items() if key & FULL]
        limited, wish = bool(held), "a full one, of 0x8000 or more"
    else:
        good = [slot for slot, key in keys.items() if key == wanted]
        limited = bool(wanted & FULL and wanted & ~FULL in keys.values())
        wish = f"0x{wanted:04x}: {want.pkey.origin}"
    if not good:
        return failed(LIMITED if limited else MISSING, f"{says}, want {wish}", measured=measured)
    slot, origin = _slot_of_jobs(seen.conf)
    if slot in good:
        return passed(f"{says}, full in slot {slot} ({origin})", measured=measured)
    there = f"0x{keys[slot]:04x}" if slot in keys else "nothing"
    reason = f"{says}, but slot {slot} ({origin}) has {there} and 0x{keys[good[0]]:04x} is in slot "
    if wanted is not None:
        return passed(f"{reason}{good[0]}: jobs set NCCL_IB_PKEY={good[0]}", measured=measured)
    return warned(SLOT, f"{reason}{good[0]}", measured=measured, slot=str(good[0]))


def _slot_of_jobs(conf: tuple[tuple[str, str], ...] | Unread) -> tuple[int, str]:
    named = {} if isinstance(conf, Unread) else dict(conf)
    given = named.get("NCCL_IB_PKEY", "")
    return (int(given), PATH) if given.isdecimal() else (0, "NCCL's default")


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
    causes=(LIMITED, MISSING, SLOT),
    platforms=frozenset({"gpu-ib"}),
    not_applicable=only_infiniband,
)
