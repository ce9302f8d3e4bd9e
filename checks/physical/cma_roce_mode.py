"""RDMA-CM applications on this port begin with RoCE v2.

Why: RDMA-CM (storage, some MPI) takes a default RoCE version for each port. At v1 its packets are
no IP packets, stop at the first router and carry no DSCP. NCCL's own data does not go through
RDMA-CM, so training is not hurt by it directly: this is a warning.
Reads: ``/sys/kernel/config/rdma_cm/HCA/ports/N``. One verdict for each Ethernet rail.
By hand: ``cma_roce_mode -d HCA -p 1`` (root; it mounts configfs and makes a folder there, so
commcheck does not run it); ``cat /sys/kernel/config/rdma_cm/HCA/ports/1/default_roce_mode``.
Mend: ``cma_roce_mode -d HCA -p 1 -m 2``; connections that are there keep what they have.
Healthy though odd: the folder is only there where somebody set a default: without it the kernel
takes v2 where the port has such a GID. A ToS of 0 is the kernel's default, and marks nothing.
"""

from __future__ import annotations

from commcheck.applies import ethernet_only
from commcheck.check import Check, Nothing, not_applicable, passed, reads, warned
from commcheck.formats.roce_marking import ROCE_MARKING, RoceMarking
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The port's RDMA-CM defaults, where somebody set them."""

    marking: RoceMarking = reads(ROCE_MARKING)


SET_MODE = Remedy(
    command="cma_roce_mode -d {hca} -p {port} -m 2",
    effect=Words(
        "New RDMA-CM connections use RoCE v2. Gone at reboot unless made persistent.",
        "新建的 RDMA-CM 连接使用 RoCE v2。未做持久化则重启后失效。",
    ),
    precondition=Words(
        "The peers of these applications have RoCE v2 GIDs too.",
        "对端应用同样具备 RoCE v2 GID。",
    ),
)

VERSION_ONE = Cause(
    slug="cma-roce-v1",
    title=Words("RDMA-CM defaults to RoCE v1", "RDMA-CM 默认使用 RoCE v1"),
    meaning=Words(
        "Storage and other RDMA-CM applications on this port cannot cross a router; NCCL is not "
        "concerned.",
        "该端口上的存储等 RDMA-CM 应用无法跨路由；NCCL 数据面不受影响。",
    ),
    remedies=(SET_MODE,),
)


def judge(seen: Seen, rail: Rail, _want: Nothing, _limits: Nothing) -> Verdict:
    """Advisory: NCCL does not use it."""
    marking = seen.marking
    named = f"{rail.label} port {rail.port}"
    if marking.cma_roce_version is None:
        return not_applicable(f"nobody set RDMA-CM defaults of {named}: the kernel's own are v2")
    measured = {"cma_roce_version": marking.cma_roce_version, "cma_tos": marking.cma_tos}
    says = f"{named} has RDMA-CM default RoCE v{marking.cma_roce_version}"
    if marking.cma_tos is not None:
        says += f", ToS {marking.cma_tos}"
    if marking.cma_roce_version == 2:
        return passed(says, measured=measured)
    return warned(VERSION_ONE, f"{says}, want v2", measured=measured, hca=rail.hca, port=rail.port)


CHECK = Check(
    id="physical.cma-roce-mode",
    title=Words("RDMA-CM begins with RoCE v2", "RDMA-CM 默认 RoCE v2"),
    subject=Rail,
    seen=Seen,
    judge=judge,
    needs=("physical.nic-link-up",),
    causes=(VERSION_ONE,),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=ethernet_only,
)
