"""The GID index that jobs are told to use is a routable RoCE v2 address on this rail.

Why: ``NCCL_IB_GID_INDEX`` is one number for all HCAs of all hosts. An IPv6 address, a VLAN, or an
address that was added again moves the indices of one port, and the number then means RoCE v1 or a
link-local address there: ``ibv_modify_qp`` to RTR hangs or fails with 110, NCCL reports error 12.
Reads: the index from ``/etc/nccl.conf`` or ``commcheck_gid_index``; the port's GID table from
sysfs. One verdict for each Ethernet rail.
By hand: ``grep GID_INDEX /etc/nccl.conf``; ``show_gids HCA``, or
``cat /sys/class/infiniband/HCA/ports/1/gid_attrs/types/3``.
Mend: best, leave it unset with NCCL 2.21 or newer, which picks the right index for each port. Else
make the addresses of all ports alike (same order, IPv6 off on the rails), or set the index again.
Healthy though odd: the index need not be 3. An index that a job sets in its own environment is not
seen here. With several good indices any will do.
"""

from __future__ import annotations

from commcheck.applies import ethernet_only
from commcheck.check import (
    Check,
    Nothing,
    Unread,
    expects,
    failed,
    not_applicable,
    passed,
    reads,
    tries,
    undecidable,
)
from commcheck.command import whole_number
from commcheck.expect import GID_FAMILY, GID_INDEX
from commcheck.formats.gid_table import GID_TABLE, Gid, GidTable
from commcheck.formats.nccl_conf import NCCL_CONF, PATH
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The port's GIDs, and what every job of the host begins with."""

    table: GidTable = reads(GID_TABLE)
    conf: tuple[tuple[str, str], ...] | Unread = tries(NCCL_CONF)


@dataclass(frozen=True, slots=True)
class Want:
    """The declared index, and the fabric's address family."""

    index: Wanted[int | None] = expects(GID_INDEX)
    family: Wanted[str] = expects(GID_FAMILY)


UNSET = Remedy(
    command="sed -i /NCCL_IB_GID_INDEX/d /etc/nccl.conf",
    effect=Words(
        "NCCL 2.21 and newer picks the index for each port by itself; jobs that start from now on "
        "see it. Take it out of job scripts too.",
        "NCCL 2.21 及以上会为每个端口自动选择索引；新启动的作业生效。作业脚本中也应删除。",
    ),
    precondition=Words(
        "That file sets it, and every job's NCCL is 2.21 or newer; else set the right index "
        "instead.",
        "该文件确有此项，且所有作业的 NCCL 均不低于 2.21；否则请改为正确的索引。",
    ),
)
ALIGN = Remedy(
    command="show_gids {hca}",
    effect=Words(
        "Shows the port's indices. Make its addresses like those of the other rails (IPv6 off, "
        "VLANs alike), or use the index that is right on all.",
        "显示端口索引。使其地址与其他轨一致（关闭 IPv6、VLAN 相同），"
        "或改用在所有端口都正确的索引。",
    ),
    precondition=Words(
        "Reading is free; changing addresses cuts the rail: no job on the host.",
        "读取无影响；修改地址会中断该轨：主机上不得有作业。",
    ),
)

WRONG = Cause(
    slug="gid-index-wrong",
    title=Words("GID index points to a wrong GID", "GID 索引指向错误的 GID"),
    meaning=Words(
        "Jobs use an index that on this port is RoCE v1, link-local or of another family: their "
        "queue pairs cannot be connected across routers.",
        "作业使用的索引在该端口上对应 RoCE v1、链路本地或其他地址族：跨路由无法建立 QP 连接。",
    ),
    remedies=(ALIGN, UNSET),
)
EMPTY = Cause(
    slug="gid-index-empty",
    title=Words("GID index points to no GID", "GID 索引处没有 GID"),
    meaning=Words(
        "Jobs use an index at which this port has nothing: they fail when they connect.",
        "作业使用的索引在该端口上为空：建立连接时会失败。",
    ),
    remedies=(ALIGN, UNSET),
)


def judge(seen: Seen, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """The file of the host counts before what the inventory declares."""
    named = f"{rail.label} ({rail.netdev})"
    conf = {} if isinstance(seen.conf, Unread) else dict(seen.conf)
    given, origin = conf.get("NCCL_IB_GID_INDEX"), PATH
    if given is None and want.index.value is not None:
        given, origin = str(want.index.value), str(want.index.origin)
    if given is None and isinstance(seen.conf, Unread):
        return undecidable(f"whether a GID index is set is not known: {seen.conf.reason}")
    # -1 is NCCL's own word for "pick one".
    if given is None or given == "-1":
        return not_applicable(f"no GID index is set on the host for {named}: NCCL picks one itself")
    index = whole_number(given)
    if index is None:
        return undecidable(f"NCCL_IB_GID_INDEX is {given[:40]!r}, no number: {origin}")
    return _at(index, origin, seen.table, named, rail, want)


def _at(index: int, origin: str, table: GidTable, named: str, rail: Rail, want: Want) -> Verdict:
    measured = {"gid_index": index}
    gid = next((each for each in table.gids if each.index == index), None)
    good = _good(table, want.family.value)
    elsewhere = (
        f"; such a one is at {', '.join(str(each.index) for each in good[:4])}" if good else ""
    )
    wanted = f"want RoCE v2 by {want.family.value} ({origin}){elsewhere}"
    if gid is None:
        reason = f"{named} has no GID at index {index}, {wanted}"
        return failed(EMPTY, reason, measured=measured, hca=rail.hca)
    shown = f"RoCE v{gid.roce_version} {gid.ipv4 or gid.gid}"
    if gid in good:
        return passed(f"{named} has {shown} at GID index {index} ({origin})", measured=measured)
    reason = f"{named} has {shown} at GID index {index}, {wanted}"
    return failed(WRONG, reason, measured=measured, hca=rail.hca)


def _good(table: GidTable, family: str) -> list[Gid]:
    """Routable ones; where there is none, what roce-v2-gid warns of is as good as any."""
    second = [gid for gid in table.gids if gid.roce_version == 2]
    mine = [gid for gid in second if (gid.ipv4 is not None) is (family == "ipv4")]
    routed = [gid for gid in mine if not gid.is_link_local]
    return routed or [gid for gid in mine if gid.ipv4 is not None]


CHECK = Check(
    id="physical.roce-gid-index",
    title=Words("GID index of the jobs is routable", "作业的 GID 索引可路由"),
    subject=Rail,
    seen=Seen,
    want=Want,
    judge=judge,
    needs=("physical.roce-v2-gid",),
    causes=(WRONG, EMPTY),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=ethernet_only,
)
