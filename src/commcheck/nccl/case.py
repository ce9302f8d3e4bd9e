"""One job to judge: its last attempt, its world communicator, and what the input can show.

Restarts and appended logs put several attempts into one input: an attempt whose GPUs another one
took over later is not judged. Rules ask here, so that all of them see the same job.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from functools import cached_property
from itertools import pairwise
from typing import Final

from commcheck.lazy import dataclass, regex
from commcheck.nccl import attempts
from commcheck.nccl.errors import GPU_REGISTRATION, LADDER, UNKNOWN, UNNAMED
from commcheck.nccl.facts import Comm, Ended, Error, Job, Member, Process, Progress, Timeout
from commcheck.nccl.places import At
from commcheck.nccl.site import Site, SiteHost
from commcheck.report.counts import many
from commcheck.report.ranges import fold_hosts

DAMAGED_SHARE: Final = 0.05
"""Share of fragments above which nothing is concluded from counts or absence."""

BUILT_IN: Final = ("IB", "Socket")
LIBFABRIC: Final = ("AWS Libfabric", "Libfabric", "OFI")
"""Names of aws-ofi-nccl, whatever provider carries its traffic."""

OVER_VERBS: Final = ("IBext", "NCCL RDMA Plugin", "SPCX", "gIB")
"""Beginnings of the names of plugins over verbs: HPC-X, Spectrum-X, Google from A3 Ultra on."""

GOOGLE_TCP: Final = ("FasTrak", "GPUDirectTCPX")
"""Those of Google's A3 Mega and A3, whose profile sets algorithms and protocols."""

_CALLED: Final = regex(r"\[\w+ [Tt]hread\]|\b(?:bootstrap|enqueue|group|init)\.\w+:\d+ -> \d.*$")
"""The top of a ladder: a call of the program, or a thread of NCCL's own."""


@dataclass(frozen=True)
class Case:
    """A job's facts and the site's expectations, with what follows from both.

    ``part``: the processes of one job, where the input holds several; None: all of the input.
    """

    job: Job
    site: Site = field(default_factory=Site)
    part: frozenset[Process] | None = None

    @cached_property
    def _parts(self) -> list[set[Process]]:
        return attempts.parts(self.job)

    @cached_property
    def superseded(self) -> set[Process]:
        """Processes of attempts whose GPUs a later attempt took over, or that never came so far."""
        return attempts.superseded(self.job, self._parts)

    @property
    def name(self) -> str:
        """How reports call one job of several."""
        ranks = self.world.nranks if self.world else len(self.procs)
        return f"job of {many(ranks, 'rank')} on {fold_hosts(self.hosts) or 'unknown hosts'}"

    @cached_property
    def attempts(self) -> int:
        """How many attempts or jobs the input holds."""
        return max(1, len(self._parts))

    @cached_property
    def jobs(self) -> tuple[Case, ...]:
        """A case for each job of the input, the one with the largest communicator first.

        Jobs share no process. What no communicator names is judged with the first.
        """
        live = [part for part in self._parts if not part & self.superseded]
        if self.part is not None or len(live) < 2:
            return (self,)
        first = set(self.world_procs)
        live.sort(key=lambda part: not part & first)
        named = {proc for part in self._parts for proc in part}
        loose = {proc for proc in self.job.procs.values() if proc not in named}
        live[0] = live[0] | (loose - self.superseded)
        return tuple(Case(self.job, self.site, frozenset(part)) for part in live)

    @cached_property
    def procs(self) -> tuple[Process, ...]:
        """The processes that are judged."""
        if self.part is not None:
            return tuple(sorted(self.part, key=lambda proc: proc.first))
        return tuple(each for each in self.job.procs.values() if each not in self.superseded)

    @cached_property
    def comms(self) -> tuple[Comm, ...]:
        """Their communicators."""
        if self.part is not None:
            mine = {comm for proc in self.part for comm in proc.comms}
            return tuple(sorted(mine, key=lambda comm: comm.order))
        return tuple(
            comm
            for comm in self.job.comms.values()
            if any(member.proc not in self.superseded for member in comm.members.values())
        )

    @cached_property
    def world(self) -> Comm | None:
        """The largest communicator; of equal ones the first.

        Where that lies inside a machine, the largest that leaves one: ``in_mesh``.
        """
        across = _largest(filter(self._leaves_machine, self.comms)) if self.in_mesh else None
        return across or _largest(self.comms)

    @cached_property
    def in_mesh(self) -> bool:
        """True where there are groups inside a host and groups across hosts, and none of all ranks.

        FSDP with PyTorch's device mesh makes no other communicators.
        """
        largest = _largest(self.comms)
        return (
            largest is not None
            and not self._leaves_machine(largest)
            and any(map(self._leaves_machine, self.comms))
        )

    def _leaves_machine(self, comm: Comm) -> bool:
        if comm.mnnvl and comm.nodes == 1:
            return False
        if comm.nets or comm.collnet or (comm.nodes or 1) > 1:
            return True
        return len({self.machine(member.proc.host) for member in comm.members.values()}) > 1

    # --- hosts and ranks ------------------------------------------------------------------------

    def machine(self, host: str) -> str:
        """The machine of a host name of the log."""
        return self.site.machine(host)

    def expected(self, host: str) -> SiteHost:
        """What the inventory says of it."""
        return self.site.of(host)

    def rank_host(self, comm: Comm, rank: int) -> str | None:
        """The machine a rank runs on, or None where no line of it was seen."""
        member = comm.members.get(rank)
        return self.machine(member.proc.host) if member else None

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """Machines of the world communicator, or of all processes."""
        procs = (
            [member.proc for member in self.world.members.values()] if self.world else self.procs
        )
        return tuple(dict.fromkeys(self.machine(each.host) for each in procs if each.host))

    @cached_property
    def world_procs(self) -> tuple[Process, ...]:
        """Processes of the world communicator; in a mesh all that have one."""
        if self.world is None:
            return self.procs
        if self.in_mesh:
            return tuple(proc for proc in self.procs if proc.comms)
        return tuple(dict.fromkeys(member.proc for member in self.world.members.values()))

    def domains(self, comm: Comm) -> int | None:
        """NVLink domains with ranks of it: hosts, but a rack of MNNVL is one; None: not known."""
        if comm.mnnvl:
            return comm.nodes if comm.nodes == 1 else None
        return len({self.machine(member.proc.host) for member in comm.members.values()})

    # --- gates ----------------------------------------------------------------------------------

    @cached_property
    def network_in_use(self) -> bool:
        """True where the world communicator's traffic crosses a network."""
        comm = self.world
        if comm is None:
            return len(self.hosts) > 1
        if comm.nets or comm.collnet:
            return True
        if comm.mnnvl and comm.nodes == 1:
            return False
        return len(self.hosts) > 1 or (comm.nodes or 1) > 1

    @cached_property
    def networks(self) -> dict[str, list[Process]]:
        """``Using network`` values of the world's processes; a cut name counts as the whole one."""
        found: dict[str, list[Process]] = {}
        for proc in self.world_procs:
            if proc.network:
                found.setdefault(proc.network, []).append(proc)
        for short in sorted(found, key=len):
            whole = [
                name
                for name in found
                if name != short and name.startswith(short) and len(found[name]) > len(found[short])
            ]
            if whole and short not in BUILT_IN:
                found[whole[0]] += found.pop(short)
        return found

    @cached_property
    def network(self) -> str | None:
        """The network that most processes use."""
        return max(self.networks, key=lambda name: len(self.networks[name]), default=None)

    @property
    def plugin(self) -> bool:
        """True where a plugin carries the traffic: its lines and devices are its own."""
        return self.network is not None and self.network not in BUILT_IN

    @property
    def libfabric(self) -> bool:
        """True where that plugin is aws-ofi-nccl: its channels show GPU Direct as NCCL's own do."""
        return self.network in LIBFABRIC

    @property
    def over_efa(self) -> bool:
        """True where libfabric's provider is EFA's."""
        return self.libfabric and any(proc.provider == "efa" for proc in self.world_procs)

    @cached_property
    def narrow(self) -> str:
        """Why absence proves nothing: the input shows only a part of the job. Else empty."""
        comm = self.world
        if comm is None or comm.nranks <= 1:
            return ""
        seen = len(comm.members)
        if self.job.live and seen < comm.nranks:
            return f"{seen} of {comm.nranks} ranks run where logs were found"
        if seen == 1:
            return f"the input holds 1 of {comm.nranks} ranks"
        if comm.nodes and not comm.mnnvl and len(self.hosts) < comm.nodes and seen < comm.nranks:
            return f"the input holds {len(self.hosts)} of {comm.nodes} hosts"
        if comm.nodes is None and seen < comm.nranks and self._lacks_whole_hosts(comm):
            some = many(len(self.hosts), "host")
            return f"{comm.nranks - seen} of {comm.nranks} ranks may run elsewhere: it shows {some}"
        return ""

    def _lacks_whole_hosts(self, comm: Comm) -> bool:
        """True where the ranks of other hosts may only not have been read.

        Every host that was read has as many ranks, evenly apart, and no file holds two hosts.
        """
        ranks: dict[str, list[int]] = {}
        in_file: dict[int, set[str]] = {}
        for rank, member in sorted(comm.members.items()):
            host = self.machine(member.proc.host)
            ranks.setdefault(host, []).append(rank)
            for file in member.proc.files:
                in_file.setdefault(file, set()).add(host)
        steps = ({after - before for before, after in pairwise(each)} for each in ranks.values())
        return (
            all(len(each) <= 1 for each in steps)
            and len({len(each) for each in ranks.values()}) == 1
            and all(len(hosts) == 1 for hosts in in_file.values())
        )

    @cached_property
    def damaged(self) -> str:
        """Why counts prove nothing, or empty."""
        stats = self.job.stats
        if stats.repeated:
            return f"Ray's de-duplication replaced {many(stats.repeated, 'line')}"
        if stats.damaged_share > DAMAGED_SHARE:
            if 2 * stats.unread_records > stats.fragments:
                lines = many(stats.unread_records, "line")
                return f"{lines} of JSON in a form that is not read"
            return f"{stats.damaged_share:.0%} of the lines lost their head or tail"
        return ""

    @cached_property
    def unclear_hosts(self) -> str:
        """Why host names do not tell machines apart, or empty.

        NCCL cuts names at the dot, so machines of two racks may log alike; pods of one machine may
        log under different names. Its own count of nodes gives both away.
        """
        comm = self.world
        if comm is None or comm.nodes is None or comm.mnnvl or len(comm.members) < comm.nranks:
            return ""
        names = {proc.host for proc in self.world_procs}
        if names <= self.site.hosts.keys() - self.site.shared:
            return ""
        if comm.nodes == len(self.hosts):
            return ""
        whose = ", which machines of the inventory share" if names & self.site.shared else ""
        nodes, seen = many(comm.nodes, "node"), many(len(self.hosts), "host name")
        return f"NCCL counts {nodes}, the log has {seen}{whose}"

    @property
    def uncountable(self) -> str:
        """Why neither counts nor absence prove anything, or empty."""
        return self.damaged or self.narrow

    @property
    def turn_on_whole(self) -> str:
        """What would make the input whole."""
        if self.job.stats.repeated:
            return "set RAY_DEDUP_LOGS=0 for the driver, or read the per-worker files"
        if "JSON" in self.damaged:
            return "export the lines as plain text"
        return "read the logs of all ranks (NCCL_DEBUG=INFO everywhere, one file a process: %h.%p)"

    def saw(self, subsystem: str) -> bool:
        """True where lines of a subsystem were certainly logged."""
        return any(subsystem in proc.seen for proc in self.procs)

    @cached_property
    def _restarts(self) -> dict[int, int]:
        return attempts.restarts(self.procs, self.superseded)

    def _is_of_now(self, at: At) -> bool:
        return at[1] >= self._restarts.get(at[0], 0)

    @cached_property
    def timeouts(self) -> tuple[Timeout, ...]:
        """Watchdog lines of the last attempt."""
        return tuple(each for each in self.job.timeouts if self._is_of_now(each.at))

    @cached_property
    def progress(self) -> tuple[Progress, ...]:
        """How far ranks of the last attempt came."""
        return tuple(each for each in self.job.progress if self._is_of_now(each.at))

    @cached_property
    def torch_ended(self) -> tuple[Ended, ...]:
        """Where PyTorch ended processes of the last attempt, in the files of this job."""
        found = [each for each in self.job.ended if self._is_of_now(each.at)]
        if self.part is not None:
            mine = {file for proc in self.procs for file in proc.files}
            found = [each for each in found if each.at[0] in mine]
        return tuple(found)

    # --- errors ---------------------------------------------------------------------------------

    @cached_property
    def errors(self) -> tuple[Error, ...]:
        """Errors of the judged processes, file by file in order."""
        found = [error for proc in self.procs for error in proc.errors]
        if not self.timeouts:  # the abort that follows them prints ladders, too
            found += [each for proc in self.procs if not proc.errors for each in _bare(proc)]
        return tuple(sorted(found, key=lambda error: error.at))

    def ended(self, error: Error) -> bool:
        """True where an error may have ended what its process did."""
        if error.kind in ("no-verbs", "ofi-init"):
            return False  # NCCL goes on over another network
        if error.kind not in UNNAMED and error.kind != GPU_REGISTRATION:
            return True
        proc = error.proc
        if proc.went_on and proc.went_on[0] == error.at[0] and proc.went_on > error.at:
            return False
        if error.kind == UNKNOWN.kind:
            return any(each.at[0] == error.at[0] and each.at > error.at for each in proc.ladders)
        return error.kind != LADDER or _CALLED.search(error.text) is not None

    def of_kind(self, *kinds: str) -> list[Error]:
        """Errors of some kinds."""
        return [error for error in self.errors if error.kind in kinds]

    @property
    def version(self) -> tuple[int, int, int] | None:
        """The newest version that any process prints."""
        versions = [proc.version for proc in self.procs if proc.version]
        if not versions and self.job.banners:
            first = next(iter(self.job.banners)).partition("+")[0].split(".")
            numbers = [int("".join(c for c in part if c.isdigit()) or 0) for part in first[:3]]
            return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else None
        return max(versions, default=None)

    def where(self, places: Iterable[tuple[int, int] | None], most: int = 5) -> list[str]:
        """Places as ``file:line``, a few of them."""
        found = sorted({place for place in places if place is not None})
        return [self.job.where(place) for place in found[:most]]


def _bare(proc: Process) -> Iterable[Error]:
    """Errors of a process that printed nothing of them but their way up."""
    done = attempts.came_through(proc)
    for ladder in proc.ladders:
        left = ladder.code == 3 and ladder.first.startswith("misc/socket.")
        if left and done:
            continue  # a peer that ended first closes its sockets: so do healthy jobs end
        text = ladder.first if ladder.first == ladder.last else f"{ladder.first} ... {ladder.last}"
        yield Error(LADDER, text, ladder.at, proc, secondary=left or ladder.code == 6)


def _largest(comms: Iterable[Comm]) -> Comm | None:
    return max(comms, key=lambda comm: (comm.nranks, -comm.order), default=None)


def lacks_gdr(member: Member) -> bool | None:
    """True where most of a rank's network lines lack GPU Direct; None without any such line."""
    plain, direct = member.net[0] + member.net[1], member.net[2] + member.net[3]
    return None if plain + direct == 0 else plain > direct
