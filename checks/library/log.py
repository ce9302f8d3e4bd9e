"""What NCCL and HCCL wrote into a job's log shows the path the hardware was bought for.

Why: The log is the only way the library talks to its operator. It says which network it took, over
which NICs, with GPU Direct or through host memory, which ranks never came, and which error was the
first. A job that fell back to TCP or to host memory still trains, at a tenth of the speed.
Reads: the job's logs on the host, named by ``commcheck_nccl_log``: only lines of NCCL, HCCL and
PyTorch's watchdog leave the host. Files that you have: ``commcheck analyze log FILE...``, with
``-i INVENTORY`` for what the hosts should have. Plain or gz, one file a process or all in one,
wrapped by torchrun, Ray, kubectl, mpirun or srun.
By hand: ``grep -a 'Using network' LOG`` (Socket is TCP),
``grep -a 'via NET' LOG | grep -vc GDRDMA`` (0 with GPU Direct), ``grep -ac 'Init COMPLETE' LOG``
(as many as ranks), ``grep -a 'NCCL WARN' LOG``.
For an audit start the job with ``NCCL_DEBUG=INFO
NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET,GRAPH NCCL_DEBUG_FILE=/var/log/nccl.%h.%p``. Never ALL,
COLL or PROXY in production: gigabytes.
Mend: the first cause only; errors that follow from it (status 5, "Connection closed by remote
peer", watchdogs of all other ranks) go with it. Each finding has a rule number and names the lines
it rests on. Most lead down to layer 1: the finding says which check to look at.

How the rules are read:

- LOG-001 to LOG-009: the network that was chosen, its NICs and interfaces.
- LOG-013 to LOG-017: ranks that never came, init that did not end, versions that do not fit.
- LOG-018 to LOG-024: the way inside a host, rings over hosts, NICs that carry nothing.
- LOG-025 to LOG-030: GPU Direct RDMA, and traffic that leaves its rail.
- LOG-032 to LOG-047: errors, the first one first; topology files, NVLink, slow init.
- LOG-048, LOG-049: PyTorch's watchdog: a late rank, or ranks in different collectives.
- HLOG-001 to HLOG-008: HCCL: error codes, who waits for whom, heartbeat, TLS.
- DIAG-001 to DIAG-014: the report of NCCL's own diagnostics (2.31 and newer).
- A rule that lacks its lines is not judged, and says what to turn on. Nothing is concluded from
  the absence of lines where only some ranks, or a de-duplicated stream, were read.

Healthy though odd: ``No device found`` and ``Using network Socket`` on a job of one host; channels
after ``Init COMPLETE`` (2.22 and newer connect at the first use); ``NET/Plugin: Could not find``;
``port active`` and ``client reregister`` as "async error event" (2.23 to 2.27); ``nNodes 1`` on a
rack of NVLink-connected hosts; ``GDR 1`` on one host means nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from commcheck.check import Check, Nothing, Unread, expects, not_applicable, tries, undecidable
from commcheck.expect import LINE_RATE_GBITS, NICS, NVLINK_LINKS
from commcheck.model import Machine, Verdict, Wanted
from commcheck.nccl.case import Case
from commcheck.nccl.causes import (
    CHANNELS_DIFFER,
    CONNECT_FAILED,
    CROSS_RAIL,
    DRIVER_OLD,
    GDR_OFF,
    INIT_STUCK,
    LINK_TYPE,
    MIXED_NETWORKS,
    NIC_LIST,
    NO_DEVICE,
    P2P_REFUSED,
    PLUGIN_MISSING,
    RANKS_MISSING,
    SAME_HOST_NET,
    SAME_HOST_SHM,
    SOCKET_FALLBACK,
    UNEVEN_RAILS,
    VERSIONS,
    WORLD_SIZE,
    WRONG_INTERFACE,
    ZIGZAG,
)
from commcheck.nccl.causes_diag import (
    DIAG_GPU,
    DIAG_NIC,
    DIAG_P2P,
    DIAG_PCI,
)
from commcheck.nccl.causes_errors import (
    ASYNC_EVENT,
    COMPLETION,
    CUDA,
    DESYNC,
    DUPLICATE_GPU,
    FORCED,
    MEMLOCK,
    MISMATCH,
    MNNVL,
    NODES,
    NVLS,
    QP_SETUP,
    RETRY_EXCEEDED,
    SHM,
    SLOW_INIT,
    TIMEOUT,
    TOPOLOGY_FILE,
)
from commcheck.nccl.causes_hccl import (
    HCCL_CODE,
    HCCL_DESYNC,
    HCCL_HEARTBEAT,
    HCCL_LATE,
    HCCL_LINK,
    HCCL_MISSING,
    HCCL_NO_RDMA,
    HCCL_TLS,
)
from commcheck.nccl.host_log import HOST_LOG, HostLog, job_of
from commcheck.nccl.judge import ID, TITLE
from commcheck.nccl.judge import judge as judge_log
from commcheck.nccl.site import GDR, LOG_NAMES, NCCL_LOG, NETWORK, RAIL_ONLY, Site, site_host


@dataclass(frozen=True, slots=True)
class Seen:
    """The log's lines, where the inventory names a log."""

    log: HostLog | Unread = tries(HOST_LOG)


@dataclass(frozen=True, slots=True)
class Want:
    """What the inventory says of the host, as far as a log can be held against it."""

    nccl_log: Wanted[str | None] = expects(NCCL_LOG)
    log_names: Wanted[tuple[str, ...] | None] = expects(LOG_NAMES)
    gdr: Wanted[bool | None] = expects(GDR)
    nvlinks: Wanted[int | None] = expects(NVLINK_LINKS)
    rail_only: Wanted[bool | None] = expects(RAIL_ONLY)
    nics: Wanted[tuple[str, ...] | None] = expects(NICS)
    network: Wanted[str | None] = expects(NETWORK)
    line_rate: Wanted[int | None] = expects(LINE_RATE_GBITS)


def judge(
    seen: Seen, machine: Machine, want: Want, _limits: Nothing
) -> Verdict | tuple[Verdict, ...]:
    """All rules on the host's own log."""
    path = want.nccl_log.value
    if path is None:
        return not_applicable("commcheck_nccl_log names no log of a job on this host")
    if isinstance(seen.log, Unread):
        return undecidable(f"{path} was not read: {seen.log.reason}", turn_on=seen.log.remedy)
    case = Case(job_of(seen.log, path), _site(machine, want))
    return judge_log(case).verdicts


def _site(machine: Machine, want: Want) -> Site:
    platform = "" if machine.platform == "unknown" else machine.platform
    host = site_host(
        machine.name,
        platform,
        gdr=want.gdr.value,
        nvlinks=want.nvlinks.value,
        rail_only=want.rail_only.value,
        nics=want.nics.value,
        network=want.network.value,
        line_rate_gbits=want.line_rate.value,
    )
    names = {machine.name, machine.hostname, *(want.log_names.value or ())} - {""}
    return Site({each.partition(".")[0]: host for each in names})


CHECK = Check(
    id=ID,
    title=TITLE,
    subject=Machine,
    seen=Seen,
    want=Want,
    judge=judge,
    causes=(
        SOCKET_FALLBACK,
        NO_DEVICE,
        PLUGIN_MISSING,
        MIXED_NETWORKS,
        NIC_LIST,
        LINK_TYPE,
        WRONG_INTERFACE,
        CONNECT_FAILED,
        RANKS_MISSING,
        INIT_STUCK,
        WORLD_SIZE,
        VERSIONS,
        DRIVER_OLD,
        SAME_HOST_NET,
        SAME_HOST_SHM,
        P2P_REFUSED,
        ZIGZAG,
        UNEVEN_RAILS,
        GDR_OFF,
        CROSS_RAIL,
        CHANNELS_DIFFER,
        RETRY_EXCEEDED,
        COMPLETION,
        QP_SETUP,
        MEMLOCK,
        ASYNC_EVENT,
        SHM,
        DUPLICATE_GPU,
        CUDA,
        MISMATCH,
        NVLS,
        TOPOLOGY_FILE,
        MNNVL,
        NODES,
        SLOW_INIT,
        TIMEOUT,
        DESYNC,
        FORCED,
        DIAG_P2P,
        DIAG_NIC,
        DIAG_GPU,
        DIAG_PCI,
        HCCL_CODE,
        HCCL_MISSING,
        HCCL_LINK,
        HCCL_NO_RDMA,
        HCCL_HEARTBEAT,
        HCCL_LATE,
        HCCL_TLS,
        HCCL_DESYNC,
    ),
)
