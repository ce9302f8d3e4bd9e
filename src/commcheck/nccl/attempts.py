"""Which processes of a log belong together: jobs, and the attempts of a job that was restarted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from commcheck.nccl.facts import Job, Process
from commcheck.nccl.places import At


def parts(job: Job) -> list[set[Process]]:
    """Processes that share a communicator, in order of appearance: jobs and attempts."""
    parent: dict[Process, Process] = {}

    def root(proc: Process) -> Process:
        while parent.setdefault(proc, proc) is not proc:
            parent[proc] = parent[parent[proc]]
            proc = parent[proc]
        return proc

    for comm in job.comms.values():
        procs = [member.proc for member in comm.members.values()]
        for proc in procs[1:]:
            parent[root(proc)] = root(procs[0])
    found: dict[Process, set[Process]] = {}
    for comm in job.comms.values():
        for member in comm.members.values():
            found.setdefault(root(member.proc), set()).add(member.proc)
    return list(found.values())


def superseded(job: Job, of_job: Sequence[set[Process]]) -> set[Process]:
    """Processes of attempts whose GPUs a later attempt took over, or that never came so far."""
    index = {proc: number for number, part in enumerate(of_job) for proc in part}
    gpus: list[set[tuple[str, str]]] = [set() for _ in of_job]
    for comm in job.comms.values():
        for member in comm.members.values():
            if member.bus:
                gpus[index[member.proc]].add((member.proc.host, member.bus))
    gone: set[Process] = set()
    later: set[tuple[str, str]] = set()
    for part, used in zip(reversed(of_job), reversed(gpus), strict=True):
        if used & later:
            gone |= part
        later |= used
    return gone | _failed_before(job, [part for part in of_job if not part & gone])


def _failed_before(job: Job, live: Sequence[set[Process]]) -> set[Process]:
    """Processes without a communicator that ended before a later attempt came through.

    Told only where one file holds both: the order of its lines is that of the attempts.
    """
    began: dict[tuple[str, int], At] = {}
    for proc in (proc for part in live if all(map(came_through, part)) for proc in part):
        key = (proc.host, proc.first[0])
        began[key] = max(proc.first, began.get(key, proc.first))
    return {
        proc
        for proc in job.procs.values()
        if proc.pid
        and not proc.comms
        and proc.first[0] == proc.last[0]
        and proc.last < began.get((proc.host, proc.last[0]), proc.last)
    }


def restarts(live: Iterable[Process], gone: Iterable[Process]) -> dict[int, int]:
    """By file that holds an earlier attempt: the line with which the last one begins."""
    held = {proc.first[0] for proc in gone}
    began: dict[int, int] = {}
    for proc in live:
        file, line = proc.first
        if file in held and came_through(proc):
            began[file] = min(line, began.get(file, line))
    return began


def came_through(proc: Process) -> bool:
    """True where init of one of its communicators ended."""
    return any(comm.members[rank].complete for comm, ranks in proc.comms.items() for rank in ranks)
