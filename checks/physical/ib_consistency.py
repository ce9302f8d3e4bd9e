"""The InfiniBand port is in the same fabric and partitions as the same rail of its peers.

Why: Each subnet has one manager. A port that was brought up by another one is in another fabric,
as after a cable into the wrong plane or with two managers that fight: alone the host looks
healthy, and a job with it hangs when it connects.
Reads: ``sm_lid`` and ``pkeys`` of the port in ``/sys/class/infiniband``. One verdict for each
InfiniBand rail; hosts are compared rail by rail.
By hand: ``ibstat HCA | grep 'SM lid'`` on two hosts; ``sminfo`` (root).
Mend: ``ibnetdiscover`` (root, one node only) shows where the port is; put the cable into the right
plane, or stop the manager that should not run.
On the switch: both managers' logs say who is master and when that changed.
Healthy though odd: rails of one host may be in planes of their own, each with its manager: only
rails of the same name are compared. While a standby manager takes over, lids differ for seconds.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, Trait, reads, to_compare, undecidable
from commcheck.formats.port_state import PORT_STATE
from commcheck.formats.rdma_port import RdmaPort
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The port."""

    port: RdmaPort = reads(PORT_STATE)


OTHER_FABRIC = Cause(
    slug="ib-other-fabric",
    title=Words("InfiniBand port unlike its peers", "InfiniBand 端口与同组不一致"),
    meaning=Words(
        "Another manager than that of the peers serves this rail, or it is in other partitions: "
        "it may not reach them.",
        "该轨由不同的子网管理器纳管，或所属分区不同：可能无法与同组主机通信。",
    ),
    remedies=(
        Remedy(
            command="sminfo",
            effect=Words(
                "Shows the manager that serves this host (root). Compare with a peer's, then look "
                "at the cabling and for a second manager.",
                "显示纳管本机的子网管理器（需 root）。与同组主机对比，再检查布线与多余的管理器。",
            ),
            precondition=Words("None, it only reads.", "无，只读。"),
            who="network team",
        ),
    ),
)


def judge(seen: Seen, rail: Rail, _want: Nothing, _limits: Nothing) -> Verdict:
    """Manager and partitions; whether they are right only the peers can tell."""
    port = seen.port
    if port.sm_lid is None or port.pkeys is None:
        return undecidable(f"sysfs does not tell manager and partitions of {rail.label}")
    return to_compare(
        {
            "sm_lid": port.sm_lid,
            "pkeys": [f"0x{key:04x}" for key in sorted(key for _, key in port.pkeys)],
        }
    )


def only_infiniband(rail: Rail) -> str | None:
    """RoCE has no subnet manager."""
    if rail.link_layer in (None, "InfiniBand"):
        return None
    return f"{rail.label} is {rail.link_layer}, not InfiniBand"


CHECK = Check(
    id="physical.ib-consistency",
    title=Words("InfiniBand port as its peers", "InfiniBand 端口同组一致"),
    subject=Rail,
    seen=Seen,
    judge=judge,
    needs=("physical.ib-subnet-manager", "physical.rdma-port-active"),
    causes=(OTHER_FABRIC,),
    platforms=frozenset({"gpu-ib"}),
    not_applicable=only_infiniband,
    peers=(
        Trait(
            "sm_lid",
            Words("the subnet manager's LID", "子网管理器 LID"),
            OTHER_FABRIC,
            owners=("physical.ib-subnet-manager",),
        ),
        Trait(
            "pkeys",
            Words("partition keys", "分区键"),
            OTHER_FABRIC,
            owners=("physical.ib-pkey",),
        ),
    ),
)
