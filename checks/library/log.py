"""What NCCL and HCCL wrote into a job's log shows the path the hardware was bought for.

Why: The log is the only way the library talks to its operator. It says which network it took, over
which NICs, with GPU Direct or through host memory, which ranks never came, and which error was the
first. A job that fell back to TCP or to host memory still trains, at a tenth of the speed.
Reads: the job's logs on the host, named by ``commcheck_nccl_log``, else what the ranks that run
there write now (NCCL_DEBUG_FILE of each, ``%h`` and ``%p`` filled in, where its container sees it):
only lines of NCCL, HCCL and PyTorch's watchdog leave the host. Of a pod, where its ranks name no
file, what its container wrote: ``kubectl logs``. The parts that several hosts of a
run have of one job are put together at its end, and judged as one. Files that you have:
``commcheck analyze log FILE...``, with ``-i INVENTORY`` for what the hosts should have. Plain or
gz, one file a process or all in one, wrapped by torchrun, Ray, kubectl, mpirun or srun.
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
- LOG-056: an error that no other rule knows: its text is all there is.
- LOG-057, LOG-058: what the plugins of clouds say: Google's checker of settings, EFA's peers.
- HLOG-001 to HLOG-008: HCCL: the first error, who waits for whom, heartbeat, TLS.
- DIAG-001 to DIAG-014: the report of NCCL's own diagnostics (2.31 and newer).
- Jobs that share no process are judged each, of a job that was restarted the last attempt; where no
  communicator has all ranks, the largest one across hosts stands for them.
- A rule that lacks its lines is not judged, and says what to turn on. Nothing is concluded from
  the absence of lines where only some ranks, or a de-duplicated stream, were read.

Healthy though odd: ``No device found``, ``Failed to open libibverbs`` and ``Using network Socket``
on a job of one host; ``misc/socket.cc:47 -> 3`` at its end, where a peer ended first; channels
after ``Init COMPLETE`` (2.22 and newer connect at the first use); ``NET/Plugin: Could not find``;
``port active`` and ``client reregister`` as "async error event" (2.23 to 2.27); ``nNodes 1`` on a
rack of NVLink-connected hosts; ``GDR 1`` on one host means nothing.
"""

from __future__ import annotations

from dataclasses import replace

from commcheck.check import (
    Check,
    Nothing,
    Together,
    Unread,
    expects,
    not_applicable,
    passed,
    tries,
    undecidable,
)
from commcheck.expect import LINE_RATE_GBITS, NICS, NVLINK_LINKS
from commcheck.kube.place import CONTAINER_LOG
from commcheck.lazy import dataclass
from commcheck.model import Kind, Machine, Verdict, Wanted
from commcheck.nccl.case import Case
from commcheck.nccl.causes import (
    CHANNELS_DIFFER,
    CONNECT_FAILED,
    CROSS_RAIL,
    DRIVER_OLD,
    GDR_OFF,
    INIT_STUCK,
    LIBFABRIC_TCP,
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
    GPU_MEMORY,
    GPU_UNREGISTERED,
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
    UNNAMED,
    UNREACHED,
)
from commcheck.nccl.causes_hccl import (
    HCCL_CODE,
    HCCL_DESYNC,
    HCCL_HEARTBEAT,
    HCCL_HOST_PORT,
    HCCL_LATE,
    HCCL_LEFT,
    HCCL_LINK,
    HCCL_LOSS,
    HCCL_MISSING,
    HCCL_NO_RDMA,
    HCCL_NPU_PORT,
    HCCL_PAIR,
    HCCL_PEER,
    HCCL_RANK_TABLE,
    HCCL_SUPER_POD,
    HCCL_TLS,
    HCCL_VARIABLE,
    HCCL_VERSIONS,
)
from commcheck.nccl.causes_plugins import (
    EFA_FEWER,
    EFA_GDR_OFF,
    EFA_PEER,
    SETTING_REFUSED,
)
from commcheck.nccl.explained import EXPLAINED, JOB_WIDE
from commcheck.nccl.host_log import HOST_LOG, POD_LOG, HostLog
from commcheck.nccl.job_logs import JOB_LOGS, JobLog, JobLogs, facts_of
from commcheck.nccl.judge import ID, TITLE, own_part
from commcheck.nccl.judge import judge as judge_log
from commcheck.nccl.parts import Part, judge_parts, part_of, spans_hosts
from commcheck.nccl.processes import HIDDEN, SEE_ALL, USERS, Users
from commcheck.nccl.site import GDR, LOG_NAMES, NCCL_LOG, NETWORK, RAIL_ONLY, Site, site_host


@dataclass(frozen=True, slots=True)
class Seen:
    """The lines of the log that the inventory names, and of those that ranks write now."""

    log: HostLog | Unread = tries(HOST_LOG)
    container: HostLog | Unread = tries(POD_LOG)
    running: JobLogs | Unread = tries(JOB_LOGS)
    users: Users | Unread = tries(USERS)


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
    logs = _logs(seen, want)
    if isinstance(logs, Verdict):
        return logs
    case = Case(facts_of(logs), _site(machine, want))
    verdicts = _verdicts(case)
    if not spans_hosts(case):
        return verdicts
    return tuple(_until_all_are_seen(verdict) for verdict in verdicts)


def _until_all_are_seen(verdict: Verdict) -> Verdict:
    """A fail that any host of the job may have brought about: ``judge_parts`` tells whose it is."""
    if verdict.cause is None or verdict.cause.slug not in JOB_WIDE:
        return verdict
    told = undecidable(f"the run ended before the job's other hosts were seen: {verdict.reason}")
    return replace(told, rule=verdict.rule, measured=verdict.measured)


def _verdicts(case: Case) -> tuple[Verdict, ...]:
    verdicts = judge_log(case).verdicts
    # Ranks that run and log warnings only, by choice: that they say nothing else is no doubt.
    sparing = case.job.live and case.world is None and not case.job.stats.cut_files
    if [verdict.kind for verdict in verdicts] != [Kind.UNDECIDABLE]:
        return tuple(each for each in verdicts if not (sparing and each.rule == "LOG-055"))
    if told := own_part(case):
        return (passed(told, measured=verdicts[0].measured),)
    if sparing and not case.errors:
        return (not_applicable("the ranks here log warnings only, and there is none"),)
    return verdicts


def part(seen: Seen, machine: Machine, want: Want) -> Part | None:
    """What the host has of a job that has ranks elsewhere."""
    logs = _logs(seen, want)
    if isinstance(logs, Verdict):
        return None
    case = Case(facts_of(logs), _site(machine, want))
    return part_of(case, logs, _verdicts(case))


def _logs(seen: Seen, want: Want) -> JobLogs | Verdict:
    """The log that the inventory names, else those of the ranks that run; or why there is none."""
    path = want.nccl_log.value
    # A pod's own log is what there is where its ranks name no file.
    own = path == CONTAINER_LOG
    if path is not None and not (
        own and not isinstance(seen.running, Unread) and seen.running.logs
    ):
        log = seen.container if own else seen.log
        if isinstance(log, Unread):
            return undecidable(f"{path} was not read: {log.reason}", turn_on=log.remedy)
        return JobLogs((JobLog(path, log.text, None, log.truncated),), live=False)
    if isinstance(seen.running, Unread):
        reason = f"which logs the ranks here write is not known: {seen.running.reason}"
        return undecidable(reason, turn_on=seen.running.remedy)
    if seen.running.logs:
        return seen.running
    if seen.running.missing:
        reason = f"{seen.running.missing[0]}, which a rank here writes, is not there"
        return undecidable(reason, turn_on="make the folder writable for the job's user")
    if isinstance(seen.users, Unread):
        reason = f"whether ranks of other users write logs here is not known: {seen.users.reason}"
        return undecidable(reason, turn_on=seen.users.remedy)
    if seen.users.hidden:
        return undecidable(HIDDEN, turn_on=SEE_ALL)
    return not_applicable("commcheck_nccl_log names no log, and no rank here has NCCL_DEBUG_FILE")


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
    together=Together(part, judge_parts),
    explained_by=EXPLAINED,
    causes=(
        SOCKET_FALLBACK,
        LIBFABRIC_TCP,
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
        EFA_GDR_OFF,
        EFA_FEWER,
        CROSS_RAIL,
        CHANNELS_DIFFER,
        RETRY_EXCEEDED,
        COMPLETION,
        QP_SETUP,
        UNREACHED,
        MEMLOCK,
        GPU_UNREGISTERED,
        ASYNC_EVENT,
        SHM,
        DUPLICATE_GPU,
        CUDA,
        GPU_MEMORY,
        MISMATCH,
        NVLS,
        TOPOLOGY_FILE,
        MNNVL,
        NODES,
        SLOW_INIT,
        TIMEOUT,
        DESYNC,
        FORCED,
        UNNAMED,
        SETTING_REFUSED,
        EFA_PEER,
        DIAG_P2P,
        DIAG_NIC,
        DIAG_GPU,
        DIAG_PCI,
        HCCL_CODE,
        HCCL_PEER,
        HCCL_VARIABLE,
        HCCL_RANK_TABLE,
        HCCL_VERSIONS,
        HCCL_HOST_PORT,
        HCCL_NPU_PORT,
        HCCL_LEFT,
        HCCL_LOSS,
        HCCL_MISSING,
        HCCL_LINK,
        HCCL_PAIR,
        HCCL_SUPER_POD,
        HCCL_NO_RDMA,
        HCCL_HEARTBEAT,
        HCCL_LATE,
        HCCL_TLS,
        HCCL_DESYNC,
    ),
)
