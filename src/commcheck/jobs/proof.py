"""A run is judged only after it has proved that it is the run that was asked for."""

from __future__ import annotations

from typing import Final

from commcheck.jobs import causes
from commcheck.jobs.reading import Failure, State, Sweep, size_text
from commcheck.lazy import dataclass
from commcheck.model import Cause, Kind, Status, Verdict
from commcheck.report.counts import many


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was to run. None: nobody knows, and it is not held against the run."""

    collective: str | None = None
    nranks: int | None = None
    hosts: tuple[str, ...] | None = None
    host_count: int | None = None
    max_bytes: int | None = None


_STATES: Final = {
    State.CRASHED: ("RunCrashed", "crashed", causes.BROKEN_RUN),
    State.TIMEOUT: ("RunTimedOut", "ran into its time limit", causes.BROKEN_RUN),
    State.TRUNCATED: ("RunTruncated", "ends in the middle", causes.BROKEN_RUN),
    State.LAUNCH_FAILED: ("LaunchFailed", "did not start", causes.NOT_LAUNCHED),
    State.NO_TABLE: ("LaunchFailed", "printed no table", causes.NOT_LAUNCHED),
}
_MEANT: Final = {
    "bootstrap-connect": "the bootstrap went over an address the others cannot reach: set "
    "NCCL_SOCKET_IFNAME to the management network",
    "fabric-manager-down": "nvidia-fabricmanager is not running",
    "driver-mismatch": "the driver is older than the CUDA runtime",
    "library-missing": "a library is not found: forward LD_LIBRARY_PATH or install it",
    "too-many-gpus": "more processes than GPUs on a host",
    "ib-retry-exceeded": "the peer did not answer: link, PFC, routing, MTU, or it was gone",
    "nccl-modify-qp": "no RDMA connection: GID index, VLAN or route of the rails",
    "nccl-verbs-memory": "memory cannot be registered: ulimit -l unlimited where the ranks start",
    "nccl-shm-size": "the shared memory of the ranks (/dev/shm) is too small or full",
    "nccl-duplicate-gpu": "two ranks were given one GPU",
    "nccl-no-interface": "NCCL_SOCKET_IFNAME names no interface of this host",
    "nccl-driver": "the driver is older than NCCL's CUDA",
    "nccl-truncated": "ranks run with different settings or versions",
    "nccl-version": "ranks run different versions of NCCL",
    "ssh-host-key": "the launcher's ssh does not know the host's key",
    "ssh-auth": "the launcher's ssh was not let in",
    "unreachable": "the launcher's ssh did not reach the host",
    "unresolved": "the host's name is not known where the launcher runs",
    "remote-mpi-missing": "MPI is not on the far side's PATH: give mpirun --prefix",
    "binary-missing": "the benchmark is not there on every host",
    "not-enough-slots": "the hostfile gives too few slots",
    "root-refused": "mpirun refuses root: add --allow-run-as-root, or use another user",
    "daemon-lost": "the launcher lost a host",
    "srun-no-pmi": "the MPI has no Slurm PMI: use srun --mpi=pmix or mpirun",
    "hostfile-missing": "the hostfile is not there",
    "hostname-unknown": "the host's own name does not resolve: add it to /etc/hosts",
    "hccl-root-info": "the root could not open its host NIC: HCCL_SOCKET_IFNAME, or the port range",
    "host-out-of-memory": "the host's memory, or the job's share of it, ran out: --mem, the cgroup",
    "library-mismatch": "the program was built for other libraries than are here",
    "test-timeout": "a collective did not end: a peer or a link hangs",
}
_SIGNALS: Final = {
    **dict.fromkeys((7, "Bus error"), "mostly the shared memory (/dev/shm) is too small or full"),
    **dict.fromkeys(
        (9, "Killed"), "from outside: out of memory (dmesg -T | grep -i oom), a limit, or a person"
    ),
}
_HCCL_CODES: Final = {
    7: "resource unavailable: a process left over from an earlier run, or a port in use",
    9: "timeout",
    11: "TCP connect failed",
    12: "RoCE connect failed",
    13: "TCP transfer failed",
    14: "RoCE transfer failed",
    19: "network",
    21: "remote error",
    24: "out of memory",
}


def disproved(sweep: Sweep, asked: Asked) -> Verdict | None:
    """Why the run cannot be judged, or None where it can."""
    if sweep.state is State.NOT_MULTI_RANK:
        return _error(
            "NotMultiRank",
            f"{many(sweep.tables, 'process', 'processes')} ran alone as rank 0: built without MPI, "
            "or against another MPI; nothing crossed the network",
            causes.NO_MPI,
        )
    if sweep.state in _STATES:
        return _broken(sweep)
    if asked.nranks is not None and sweep.nranks != asked.nranks:
        return _error(
            "NotMultiRank",
            f"{many(sweep.nranks or 0, 'rank')} took part, {asked.nranks} were asked for"
            + (": built without MPI, or launched on fewer" if len(sweep.hosts) <= 1 else ""),
            causes.NO_MPI if len(sweep.hosts) <= 1 else causes.OTHER_RUN,
        )
    return _other_run(sweep, asked) or _contradicts(sweep)


def _other_run(sweep: Sweep, asked: Asked) -> Verdict | None:
    if asked.hosts is not None and sweep.hosts and set(sweep.hosts) != set(asked.hosts):
        ran, wanted = ", ".join(sweep.hosts), ", ".join(asked.hosts)
        cause = causes.NO_MPI if len(sweep.hosts) == 1 else causes.OTHER_RUN
        return _error("NotMultiNode", f"it ran on {ran}, asked for was {wanted}", cause)
    if asked.host_count is not None and sweep.hosts and len(sweep.hosts) != asked.host_count:
        ran = many(len(sweep.hosts), "host")
        reason = f"it ran on {ran}, asked for were {asked.host_count}"
        cause = causes.NO_MPI if len(sweep.hosts) == 1 else causes.OTHER_RUN
        return _error("NotMultiNode", reason, cause)
    if asked.collective is not None and sweep.collective not in (None, asked.collective):
        reason = f"it is {sweep.collective}, asked for was {asked.collective}"
        return _error("OtherCollective", reason, causes.OTHER_RUN)
    largest = max((row.size for row in sweep.rows), default=0)
    if asked.max_bytes is not None and largest < 0.99 * asked.max_bytes:
        why = ", for want of memory" if sweep.reduced_to else ""
        return _error(
            "SizesTrimmed",
            f"its largest size is {size_text(largest)}{why}, asked for was "
            f"{size_text(asked.max_bytes)}",
            causes.BROKEN_RUN,
        )
    return None


def _contradicts(sweep: Sweep) -> Verdict | None:
    if sweep.problems:
        return _error("SelfCheck", "; ".join(sweep.problems), causes.BROKEN_RUN)
    if not sweep.rows:
        said = sweep.doubtful[0].doubt if sweep.doubtful else "it has no row"
        return _error("SelfCheck", f"no row can be trusted: {said}", causes.BROKEN_RUN)
    return None


def meaning(failure: Failure) -> str:
    """What a failure means, in a few words; "" where its own text is all there is."""
    code = failure.detail.get("retcode")
    if failure.slug == "hccl-error" and isinstance(code, int):
        return _HCCL_CODES.get(code, "")
    if failure.slug == "killed-by-signal":
        return _SIGNALS.get(failure.detail.get("signal"), "")
    if failure.slug == "acl-error":
        return "memory allocation failed: the NPU's memory is in use" if code == 207001 else ""
    return _MEANT.get(failure.slug, "")


def _broken(sweep: Sweep) -> Verdict:
    name, what, cause = _STATES[sweep.state]
    failure = sweep.first_failure
    if failure is not None and failure.slug == "cuda-out-of-memory":
        where = f" on {failure.host}" if failure.host else ""
        return Verdict(
            status=Status.SKIP,
            kind=Kind.BUSY,
            reason=f"GPU memory{where} is held by another process: {failure.text}",
        )
    reason = f"the run {what}"
    if sweep.rows:
        last = sweep.rows[-1]
        of = f" of {sweep.expected_rows}" if sweep.expected_rows else ""
        sizes = "size" if len(sweep.rows) == 1 and not of else "sizes"
        reason += f" after {len(sweep.rows)}{of} {sizes}, the last good one {size_text(last.size)}"
    if failure is not None:
        where = f"{failure.host}: " if failure.host and failure.host not in failure.text else ""
        meant = meaning(failure)
        reason += f": {where}{failure.text}" + (f" ({meant})" if meant else "")
    return _error(name, reason, cause, hosts=(failure.host,) if failure and failure.host else ())


def _error(name: str, reason: str, cause: Cause, *, hosts: tuple[str, ...] = ()) -> Verdict:
    return Verdict(
        status=Status.ERROR,
        kind=Kind.CHECK,
        reason=" ".join(reason.split()),
        error=name,
        cause=cause,
        remedies=cause.remedies,
        hosts=hosts,
    )
