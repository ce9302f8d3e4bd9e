"""The variables that steer NCCL and HCCL are spelt right, read right, and fit the host.

Why: NCCL ignores what it does not know, takes 0 for what is no number, and says so nowhere. One
variable left over from last week's search for a fault sends a job over TCP, into a lossy class, or
past its NVLinks, at a tenth of the speed, and nothing fails.
Reads: ``/proc/PID/environ`` of every process that holds ``/dev/nvidia-uvm`` or ``/dev/davinciN``,
reduced on the host to the names that are looked at (``NCCL_``, ``TORCH_NCCL_``, ``HCCL_``,
``UCX_``, ``GLOO_``, ``FI_`` and a few whole names: no secret leaves it), and ``/etc/nccl.conf``;
what a rank may lock, its /dev/shm, and of the files that it names (topology, graph, tuner) whether
it sees them, of what kind they are, and which PCI addresses they hold.
Of a job that has ranks on several hosts of a run, what differs between them is told at its end.
Held against the rails, PFC, DSCP map, GIDs and NVLinks that layer 1 reads, and PFC of the NPUs.
Where no job runs the file alone is judged: every job begins with it. Files that you have:
``commcheck analyze env FILE...``: process environments, dumps, nccl.conf, pods, a Ray runtime_env,
compose files and other documents, job scripts, logs, a rank table of HCCL.
By hand: ``tr '\\0' '\\n' </proc/PID/environ | grep -E '^(NCCL|UCX|GLOO|TORCH_NCCL)_'`` of a rank,
as its user or root, and ``cat /etc/nccl.conf``. Not ``env`` over SSH: that is your own.
Mend: take the variable out rather than turn it: nearly all of NCCL's defaults are right. What must
be set (NCCL_IB_TC, NCCL_IB_HCA, NCCL_SOCKET_IFNAME) belongs into one place for all jobs.

How NCCL reads it:

- The process environment wins over NCCL_CONF_FILE (2.23 and newer) or else ``~/.nccl.conf``, and
  that over ``/etc/nccl.conf``. Only what is not set yet is added.
- Numbers: ``0x6a`` is 106, ``010`` is 8, ``8M`` is 8, ``true`` is 0.
- NCCL_IB_HCA matches beginnings: ``mlx5_1`` is ``mlx5_10`` too; ``=`` is exact, ``^`` excludes.
- NCCL_IB_TC is the DSCP times 4: DSCP 26 is 104, with the ECN bit 106.

Which rule is which: ENV-001 ranks differ; ENV-002 to 009 names, numbers, syntax; ENV-010 to 019 the
network and its NICs; ENV-020 to 022 the mark of RoCE packets; ENV-023 to 031 time-outs, flows and
GPU Direct; ENV-032 to 045 ways inside a host, tuning, topology files; ENV-046 to 048 interfaces;
ENV-049 to 053 the log; ENV-054 to 064 PyTorch, identity, UCX, memory; ENV-065 what srun hands on;
ENV-066 devices of a pod; HENV-001 to 014 HCCL; RAS-010 the port of NCCL's RAS.
Healthy though odd: NCCL_NET_PLUGIN=none on plain IB and RoCE hosts; NCCL_DEBUG on one rank only;
NCCL_VERSION, which is the image's, not the library's.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import (
    Check,
    EveryRail,
    Explained,
    Nothing,
    Together,
    Unread,
    expects,
    not_applicable,
    tries,
    tries_rails,
    undecidable,
)
from commcheck.expect import FLOW_CONTROL, LINK_LAYER
from commcheck.formats.gid_table import GID_TABLE, GidTable
from commcheck.formats.hccn_port import PFC, Pfc
from commcheck.formats.ip_addresses import IP_ADDRESSES, IpAddresses
from commcheck.formats.kernel_modules import KERNEL_MODULES, PEER_MODULES
from commcheck.formats.nvidia_nvlink import NVIDIA_NVLINK, NvlinkGpu
from commcheck.formats.pci_tree import PCI_TREE, PciTree
from commcheck.formats.port_qos import PORT_QOS
from commcheck.formats.qos import Qos
from commcheck.formats.roce_marking import ROCE_MARKING, RoceMarking
from commcheck.lazy import dataclass
from commcheck.model import Machine, Verdict, Wanted
from commcheck.nccl.environment.across_hosts import Part, judge_parts, part_of
from commcheck.nccl.environment.causes import (
    CONF_SYNTAX,
    GDR_OFF,
    GID,
    HCA_LIST,
    HCCL_TUNING,
    HCCL_VALUE,
    IDENTITY,
    INTERFACE,
    LIBRARIES,
    LOCAL_PATH,
    LOGGING,
    MEMLOCK,
    MISSPELT,
    NO_EFFECT,
    NO_SUCH_NETWORK,
    NOT_A_NUMBER,
    OTHER_STACK,
    OUT_OF_RANGE,
    OVERRIDDEN,
    PATH_LEVEL,
    RAIL_ONLY,
    RANK_TABLE,
    RANKS_DIFFER,
    RAS_OPEN,
    SHARED_MEMORY,
    STRAY_TEXT,
    TCP_FORCED,
    TOPOLOGY_FILE,
    TORCH,
    TRAFFIC_CLASS,
    TUNING,
)
from commcheck.nccl.environment.causes_given import (
    NO_RDMA_DEVICE,
    NOT_HANDED_ON,
    RANK_TABLE_BEGUN,
)
from commcheck.nccl.environment.judge import ID, TITLE
from commcheck.nccl.environment.judge import judge as judge_case
from commcheck.nccl.environment.model import Environment, HostFacts, Layer
from commcheck.nccl.environment.names import Version
from commcheck.nccl.environment.on_host import (
    NCCL_KNOWN,
    NCCL_VERSION,
    around,
    case,
    environments,
    lossless_on_npus,
    nvlink,
    ports,
)
from commcheck.nccl.job_files import JOB_FILES, JobFiles
from commcheck.nccl.processes import ETC, ETC_CONF, HIDDEN, SEE_ALL, USERS, Users, ranks
from commcheck.nccl.site import ECMP, GDR, NETWORK
from commcheck.nccl.site import RAIL_ONLY as IS_RAIL_ONLY


@dataclass(frozen=True, slots=True)
class Seen:
    """The jobs' variables, and what layer 1 reads of the host."""

    users: Users | Unread = tries(USERS)
    conf: Layer | Unread = tries(ETC_CONF)
    qos: EveryRail[Qos] = tries_rails(PORT_QOS)
    marking: EveryRail[RoceMarking] = tries_rails(ROCE_MARKING)
    gids: EveryRail[GidTable] = tries_rails(GID_TABLE)
    addresses: IpAddresses | Unread = tries(IP_ADDRESSES)
    modules: frozenset[str] | Unread = tries(KERNEL_MODULES)
    gpus: tuple[NvlinkGpu, ...] | Unread = tries(NVIDIA_NVLINK)
    files: JobFiles | Unread = tries(JOB_FILES)
    pci: PciTree | Unread = tries(PCI_TREE)
    npu_pfc: Pfc | Unread = tries(PFC)


@dataclass(frozen=True, slots=True)
class Want:
    """What the inventory says of the host, as far as variables are held against it."""

    link_layer: Wanted[str] = expects(LINK_LAYER)
    flow_control: Wanted[str] = expects(FLOW_CONTROL)
    gdr: Wanted[bool | None] = expects(GDR)
    rail_only: Wanted[bool | None] = expects(IS_RAIL_ONLY)
    ecmp: Wanted[bool | None] = expects(ECMP)
    network: Wanted[str | None] = expects(NETWORK)
    version: Wanted[Version | None] = expects(NCCL_VERSION)
    known: Wanted[tuple[str, ...] | None] = expects(NCCL_KNOWN)


def judge(
    seen: Seen, machine: Machine, want: Want, _limits: Nothing
) -> Verdict | tuple[Verdict, ...]:
    """All rules on all ranks of the host, or on what every job begins with."""
    users = seen.users
    found = _environments(seen, machine, want)
    verdicts = judge_case(case(found, _facts(seen, machine, want))).verdicts if found else ()
    if isinstance(users, Unread):
        reason = f"which processes use the accelerators is not known: {users.reason}"
        return (*verdicts, undecidable(reason, turn_on=users.remedy))
    if users.hidden and not users.processes:
        return (*verdicts, undecidable(HIDDEN, turn_on=SEE_ALL))
    if verdicts:
        return verdicts
    if isinstance(seen.conf, Unread):
        return undecidable(f"no job runs, and {ETC} was not read: {seen.conf.reason}")
    return not_applicable(f"no process uses an accelerator, and {ETC} sets nothing")


def _environments(seen: Seen, machine: Machine, want: Want) -> tuple[Environment, ...]:
    processes = () if isinstance(seen.users, Unread) else ranks(seen.users)
    return environments(machine, processes, seen.conf, want.version.value)


def part(seen: Seen, machine: Machine, want: Want) -> Part | None:
    """What the host has of jobs that have ranks elsewhere."""
    verdicts = judge(seen, machine, want, Nothing())
    own = (verdicts,) if isinstance(verdicts, Verdict) else verdicts
    return part_of(_environments(seen, machine, want), own)


_LOSSLESS: Final = {"pfc": True, "global": False, "none": False}
"""Whether single priorities are lossless; undeclared where the platform is not known."""


def _has_rdma(machine: Machine, rails: tuple[str, ...]) -> bool | None:
    if machine.platform == "gpu-tcp":
        return False
    return bool(rails) if machine.platform in ("gpu-roce", "gpu-ib") else None


def _facts(seen: Seen, machine: Machine, want: Want) -> HostFacts:
    rails = tuple(dict.fromkeys(rail.hca for rail in machine.rails if rail.present))
    has_nvlink, reduces = nvlink(seen.gpus)
    peer = frozenset(PEER_MODULES)
    found = () if isinstance(seen.addresses, Unread) else seen.addresses.addresses
    facts = HostFacts(
        name=machine.name,
        ports=ports(machine, seen.qos, seen.marking, seen.gids),
        # IPv4 addresses only are read: a host that shows none tells nothing of its interfaces.
        netdevs=tuple(dict.fromkeys(netdev for netdev, _ in found)) or None,
        rail_netdevs=frozenset(rail.netdev for rail in machine.rails if rail.netdev),
        rails=rails or None,
        rdma=_has_rdma(machine, rails),
        link=want.link_layer.value,
        nvlink=has_nvlink,
        hopper=reduces,
        gdr=want.gdr.value,
        peermem=None if isinstance(seen.modules, Unread) else bool(peer & seen.modules),
        rail_only=want.rail_only.value,
        ecmp=want.ecmp.value,
        lossless=_LOSSLESS.get(want.flow_control.value),
        network=want.network.value,
        known=want.known.value or (),
        npu_pfc=lossless_on_npus(seen.npu_pfc),
    )
    return around(machine, facts, seen.files, seen.pci)


CHECK = Check(
    id=ID,
    title=TITLE,
    subject=Machine,
    seen=Seen,
    want=Want,
    judge=judge,
    together=Together(part, judge_parts),
    # The layer below shuts this one out, unless what it found there is put up with.
    explained_by=tuple(
        Explained(cause, of=frozenset({TRAFFIC_CLASS.slug}))
        for cause in ("pfc-off", "pfc-wrong-priority", "trust-not-dscp", "dscp-map-wrong")
    ),
    causes=(
        MISSPELT,
        NO_EFFECT,
        NOT_A_NUMBER,
        OUT_OF_RANGE,
        STRAY_TEXT,
        CONF_SYNTAX,
        OVERRIDDEN,
        RANKS_DIFFER,
        NOT_HANDED_ON,
        NO_RDMA_DEVICE,
        TCP_FORCED,
        NO_SUCH_NETWORK,
        HCA_LIST,
        GID,
        TRAFFIC_CLASS,
        GDR_OFF,
        PATH_LEVEL,
        LOCAL_PATH,
        TUNING,
        RAIL_ONLY,
        INTERFACE,
        LOGGING,
        TORCH,
        IDENTITY,
        OTHER_STACK,
        LIBRARIES,
        SHARED_MEMORY,
        MEMLOCK,
        TOPOLOGY_FILE,
        RAS_OPEN,
        HCCL_VALUE,
        HCCL_TUNING,
        RANK_TABLE,
        RANK_TABLE_BEGUN,
    ),
)
