"""The port decides a packet's priority by the mark that the fabric uses.

Why: RoCE v2 packets carry a DSCP and usually no VLAN tag. A port that trusts PCP (the factory
setting) finds no tag and puts them into priority 0, next to everything else and without PFC: as
lossy as with PFC off, although every PFC setting looks right.
Reads: ``mlnx_qos -i DEV``, or ``dcb -j app show dev DEV`` where that is not installed, or ``niccli
get_qos`` (root) on Broadcom without either. One verdict for each Ethernet rail.
By hand: ``mlnx_qos -i DEV | grep trust``; with dcb: a ``dscp-prio`` entry means dscp.
Mend: ``mlnx_qos -i DEV --trust dscp``, then the site's DSCP map if it is not the factory's, then
read both again: without the vendor's driver the command writes the whole map DSCP >> 3 beside
entries that exist. The two are refused in one call. Running RoCE traffic changes its class at once.
On the switch: trust DSCP on the host's port, the same DSCP in the same lossless class on every hop.
Healthy though odd: pcp is right where RoCE runs in tagged VLANs; declare ``commcheck_trust: pcp``.
The mlnx_qos of 2017 does not print the trust state: that is undecided, not wrong.
"""

from __future__ import annotations

from commcheck.applies import qos_owner
from commcheck.check import (
    Check,
    Nothing,
    expects,
    failed,
    passed,
    reads,
    undecidable,
)
from commcheck.expect import ROCE_DSCP, ROCE_PRIORITY, TRUST
from commcheck.formats.port_qos import PORT_QOS
from commcheck.formats.qos import Qos
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The port's settings, from whichever tool is there."""

    qos: Qos = reads(PORT_QOS)


@dataclass(frozen=True, slots=True)
class Want:
    """What the fabric marks by, and where RoCE belongs."""

    trust: Wanted[str] = expects(TRUST)
    dscp: Wanted[int] = expects(ROCE_DSCP)
    priority: Wanted[int] = expects(ROCE_PRIORITY)


QUIET = Words(
    "No job on the host; the switch trusts the same mark. Re-read the map afterwards.",
    "主机上没有作业；交换机信任同一标记。设置后重新读取映射表。",
)
SET_MLNX = Remedy(
    command="mlnx_qos -i {netdev} --trust {trust}",
    driver="mlx5_core",
    effect=Words(
        "RoCE traffic changes its class at once; lost at reboot unless made persistent. May write "
        "the factory map DSCP >> 3: set the site's own map afterwards.",
        "RoCE 流量立即改变队列；未持久化则重启后失效。可能写入出厂映射 DSCP >> 3，"
        "之后请恢复本站映射。",
    ),
    precondition=QUIET,
)
SET_DCB = Remedy(
    command="dcb app add dev {netdev} dscp-prio {dscp}:{priority}",
    effect=Words(
        "The same where mlnx_qos is not installed: the first DSCP entry makes the port trust DSCP.",
        "未安装 mlnx_qos 时的等效命令：添加第一条 DSCP 条目后端口即信任 DSCP。",
    ),
    precondition=QUIET,
)

NOT_DSCP = Cause(
    slug="trust-not-dscp",
    title=Words("Port does not trust DSCP", "端口不信任 DSCP"),
    meaning=Words(
        "The DSCP mark of RoCE packets is ignored: untagged RoCE lands in priority 0, which is not "
        "lossless.",
        "RoCE 报文的 DSCP 标记被忽略：未打标签的 RoCE 落入优先级 0，不受无损保护。",
    ),
    remedies=(SET_MLNX, SET_DCB),
)
NOT_PCP = Cause(
    slug="trust-not-pcp",
    title=Words("Port does not trust PCP", "端口不信任 PCP"),
    meaning=Words(
        "The inventory says that RoCE is marked in its VLAN tag, and the port looks at the DSCP.",
        "清单声明 RoCE 通过 VLAN 标签标记优先级，但端口信任 DSCP。",
    ),
    remedies=(SET_MLNX,),
)


def judge(seen: Seen, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """Compare the trust state; the map is another check's."""
    trust, wanted = seen.qos.trust, want.trust.value
    named = f"{rail.label} ({rail.netdev})"
    if trust is None:
        return undecidable(
            f"{named} does not tell what it trusts",
            turn_on="a newer mlnx-tools, or iproute2 5.11 or newer, prints it",
        )
    measured = {"trust": trust}
    if trust == wanted:
        return passed(f"{named} trusts {trust}", measured=measured)
    return failed(
        NOT_DSCP if wanted == "dscp" else NOT_PCP,
        f"{named} trusts {trust}, want {wanted}",
        measured=measured,
        netdev=rail.netdev,
        trust=wanted,
        dscp=want.dscp.value,
        priority=want.priority.value,
    )


CHECK = Check(
    id="physical.roce-trust-dscp",
    title=Words("Port trusts the fabric's mark", "端口信任网络所用标记"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    want=Want,
    judge=judge,
    needs=("physical.nic-link-up", "physical.bluefield-mode"),
    causes=(NOT_DSCP, NOT_PCP),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=qos_owner,
)
