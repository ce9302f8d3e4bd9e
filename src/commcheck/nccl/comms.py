"""Which communicator a line belongs to, and what it adds to it.

From 2.16.2 a communicator has an id that all its ranks print. Splits have none from 2.23: they are
known by their parent, count and colour. Older ones are known by their size and their turn in each
process. Channel lines name no communicator at all: they belong to the one that the same thread
began last, else to the only one in which the process has the line's own rank; where several fit,
the line counts for none.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.lazy import regex
from commcheck.nccl.facts import RING_EDGES_MOST, Comm, Job, Member, Process
from commcheck.nccl.life import Life
from commcheck.nccl.paths import Path, read_path
from commcheck.nccl.places import RANKS_MOST, At

_CHANNEL: Final = regex(
    r"Channel (\d{1,3})(?:/(\d{1,2}))? : (\d{1,7})\[[0-9a-f]+\] -> (\d{1,7})\[[0-9a-f]+\]"
    r"(?: \[(send|receive)\])?"
)
_LISTING: Final = regex(r"Channel (\d{1,3})(?:/(\d{1,3}))? : +(\d[\d ]*)(\.\.\.)?")
_OLD_STEP: Final = regex(
    r"Ring (\d{1,3}) : (\d{1,7})(?:\[[0-9a-f]+\])? -> (\d{1,7})(?:\[[0-9a-f]+\])?"
    r"( \[(?:send|receive)\])? via (.+)"
)
"""A connection up to 2.6, which named its GPUs only inside a host."""
_RING: Final = regex(r"Ring (\d{1,3}) : (\d{1,7}) -> (\d{1,7}) -> (\d{1,7})")
_TREE: Final = regex(r"\[(\d{1,3})\] ((?:-?\d+/)*-?\d+)->(\d{1,7})->(-?\d{1,9})")
_COLLNET: Final = regex(
    r"CollNet \d{1,3}(?:/\d+)? : \d+ \[(send|receive)\] via COLLNET/(.+?)/(\d{1,3})"
    r"(?:/GDRDMA(?:\(PCI\))?)?"
)

Step = tuple[int, int, int, int, bool]
"""A channel's step: channel, source, target, 1 where the receiver says it, collective or not."""

STEPS_MOST: Final = 1 << 15
"""Steps remembered: the groups of a job and the connections of a pair say the same ones again."""

LISTED_MOST: Final = 20
"""Ranks that a ring listing shows up to 2.22, in columns that overlap from rank 1000 on."""


class Registry:
    """Communicators of a job, and the lines that fill them."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._turns: dict[tuple[Process, int], int] = {}
        self._paths: dict[str, Path | None] = {}
        self._steps: dict[str, Step] = {}

    # --- life -----------------------------------------------------------------------------------

    def claims_other_rank(self, proc: Process, life: Life, at: At) -> bool:
        """True where another file gave the process another rank of the same communicator.

        One process may drive many GPUs, but it does not change its file between two of them.
        """
        comm = self._job.comms.get(("id", life.id)) if life.id else None
        ranks = proc.comms.get(comm) if comm else None
        if comm is None or not ranks or life.rank in ranks:
            return False
        return all(comm.members[rank].at[0] != at[0] for rank in ranks)

    def life(self, proc: Process, tid: int, life: Life, at: At, time_s: float | None) -> None:
        """An Init, Destroy or Abort line."""
        rank, what, pointer = life.rank, life.what, life.pointer
        if life.nranks > RANKS_MOST:
            return
        if what in ("Init COMPLETE", "Destroy COMPLETE"):
            proc.went_on = at
        if not what.startswith("Init"):
            gone = proc.by_pointer.pop(pointer, None)
            if gone is not None and rank in gone.members:
                gone.members[rank].gone = True
            return
        comm = self._comm_of(proc, life, begins=what == "Init START")
        member = self.member(comm, rank, proc, at)
        proc.by_pointer[pointer] = comm
        proc.by_tid[tid] = (comm, rank)
        if pointer in proc.unnamed:
            self.placed(proc, *proc.unnamed.pop(pointer))
        if (life.nvml_dev is None or not life.bus) and what == "Init COMPLETE":
            # The old form: what this thread prints next belongs to a communicator not named yet.
            proc.names_late = True
            del proc.by_tid[tid]
        if member is None:
            return
        if what == "Init START":
            member.start = True
        else:
            member.complete, member.complete_s = True, time_s
        comm.sizes.setdefault(life.nranks, {}).setdefault(proc.host, at)
        member.cuda_dev, member.bus = life.cuda_dev, life.bus
        member.nvml_dev = member.nvml_dev if life.nvml_dev is None else life.nvml_dev

    def placed(self, proc: Process, tid: int, match: re.Match[str], at: At) -> None:
        """``comm ... nRanks N nNodes H ... MNNVL m``."""
        comm = proc.by_pointer.get(match["ptr"])
        if int(match["nranks"]) > RANKS_MOST:
            return
        if comm is None:
            # The line that names it was lost, or comes later.
            proc.unnamed[match["ptr"]] = (tid, match, at)
            return
        member = self.member(comm, int(match["rank"]), proc, at)
        if member is not None:
            member.local_ranks = int(match["local"])
        comm.nodes, comm.nodes_at = int(match["nodes"]), comm.nodes_at or at
        comm.mnnvl = match["mnnvl"] == "1"

    def finish(self, proc: Process) -> None:
        """After the last line: what no line named is known by its turn."""
        for pointer, (tid, match, at) in list(proc.unnamed.items()):
            comm = self._by_turn(proc, int(match["nranks"]), int(match["rank"]))
            proc.by_pointer[pointer] = comm
            self.placed(proc, tid, match, at)
            begun = proc.by_tid.get(tid)
            if begun is not None and begun[0].order < 0:
                self._merge(comm, begun[0])

    def member(self, comm: Comm, rank: int, proc: Process, at: At) -> Member | None:
        """The rank's entry; None where the number cannot be one of this communicator."""
        if not 0 <= rank < comm.nranks:
            return None
        member = comm.members.get(rank)
        if member is None:
            member = comm.members[rank] = Member(proc, at)
        if member.proc is proc and comm.order >= 0:
            proc.comms.setdefault(comm, set()).add(rank)
        return member

    def _comm_of(self, proc: Process, life: Life, *, begins: bool) -> Comm:
        nranks = life.nranks
        if life.id:
            return self._get(("id", life.id), nranks)
        if life.parent:
            parent = proc.by_pointer.get(life.parent)
            owner = parent.key if parent else (proc.host, proc.pid, life.parent)
            return self._get(("split", owner, life.split, life.color, nranks), nranks)
        known = proc.by_pointer.get(life.pointer)
        # Before 2.18 there is no START: a pointer that comes again is a new communicator only
        # where the old one had completed.
        if known is not None and known.nranks == nranks and not begins:
            member = known.members.get(life.rank)
            if member is not None and not member.complete:
                return known
        return self._by_turn(proc, nranks, life.rank)

    def _by_turn(self, proc: Process, nranks: int, rank: int) -> Comm:
        """Without an id: the n-th communicator of this size in each process is the same one."""
        turn = self._turns.get((proc, nranks), 0)
        self._turns[proc, nranks] = turn + 1
        generation = 0
        while True:
            comm = self._get(("turn", nranks, turn, generation), nranks)
            taken = comm.members.get(rank)
            if taken is None or taken.proc is proc:
                return comm
            generation += 1  # the rank came back with another pid: the job was started again

    def _get(self, key: tuple[object, ...], nranks: int) -> Comm:
        comm = self._job.comms.get(key)
        if comm is None:
            comm = self._job.comms[key] = Comm(key, nranks, len(self._job.comms))
        return comm

    # --- lines without an id --------------------------------------------------------------------

    def _owner(self, proc: Process, tid: int, rank: int) -> Comm | None:
        """The communicator of a line in which the process speaks as ``rank``."""
        begun = proc.by_tid.get(tid)
        if begun is not None and (begun[0].order < 0 or rank in proc.comms.get(begun[0], ())):
            return begun[0]
        if not proc.comms or proc.names_late:
            # Up to 2.18 channels come before the only line that names the communicator.
            early = Comm(("early", proc.host, proc.pid, tid), 1 << 24, -1)
            proc.by_tid[tid] = (early, rank)
            return early
        fitting = [each for each, ranks in proc.comms.items() if rank in ranks]
        if len(fitting) == 1:
            return fitting[0]
        for each in fitting:
            each.ambiguous += 1
        return None

    def adopt(self, proc: Process, tid: int, life: Life, at: At) -> None:
        """Gives a communicator what its process printed before naming it."""
        begun = proc.by_tid.get(tid)
        if begun is None or begun[0].order >= 0:
            return
        early = begun[0]
        if life.nranks > RANKS_MOST:
            return
        del proc.by_tid[tid]
        comm = self._comm_of(proc, life, begins=False)
        proc.by_pointer[life.pointer] = comm
        self._merge(comm, early)
        member = self.member(comm, life.rank, proc, at)
        for rank, old in early.members.items():
            if member is not None and rank == life.rank:
                member.net = [a + b for a, b in zip(member.net, old.net, strict=True)]
                member.channels, member.connected = old.channels, old.connected
                member.pending = old.pending

    @staticmethod
    def _merge(comm: Comm, early: Comm) -> None:
        comm.via += early.via
        comm.nic_use += early.nic_use
        comm.collnet += early.collnet
        comm.channels = comm.channels or early.channels
        comm.listing_cut |= early.listing_cut
        comm.listing_at = comm.listing_at or early.listing_at
        for mine, theirs in (
            (comm.listings, early.listings),
            (comm.ring_next, early.ring_next),
            (comm.graph_next, early.graph_next),
        ):
            mine.update(theirs)  # type: ignore[arg-type] # the same field of both
        comm.trees.update(early.trees)
        comm.net_pairs.update(early.net_pairs)
        comm.shm_pairs.update(early.shm_pairs)
        comm.indirect.update(early.indirect)
        comm.nets.update(early.nets)
        for key, ends in early.rails.items():
            mine_ends = comm.rails.setdefault(key, [-1, -1])
            for side in (0, 1):
                mine_ends[side] = ends[side] if ends[side] >= 0 else mine_ends[side]

    def channel(self, proc: Process, tid: int, text: str, at: At) -> bool:
        """A ``Channel`` line: an edge, or rank 0's ring listing. False where it is neither."""
        left, found, right = text.partition(" via ")
        if not found:
            return self._listing(proc, tid, text, at)
        path = self._paths.get(right) or self._path(right)
        step = self._steps.get(left) or self._step(left)
        if step is None or path is None:
            return False
        channel, source, target, side, collective = step
        own = target if side else source
        begun = proc.by_tid.get(tid)
        if begun is not None and begun[1] == own:
            comm: Comm | None = begun[0]
        else:
            comm = self._owner(proc, tid, own)
        if comm is None or source >= comm.nranks or target >= comm.nranks:
            return True
        member = comm.members.get(own) or self.member(comm, own, proc, at)
        if member is not None and collective and not member.connected:
            member.pending.append((channel << 24 | source, target))
        if path.net:
            comm.via[path.labels[side]] += 1
            if member is not None:
                member.net[side + 2 * path.gdr] += 1
            key = (channel, source, target)
            self._over_net(comm, proc, key, path, at, side=side, collective=collective)
        else:
            comm.via[path.kind] += 1
            if path.kind != "P2P/CUMEM":
                self._in_host(comm, path, source << 24 | target, at)
        return True

    def _step(self, text: str) -> Step | None:
        match = _CHANNEL.fullmatch(text)
        if match is None:
            return None
        collective = match[2] is None or match[2] == "0"
        side = int(match[5] == "receive")
        step = int(match[1]), int(match[3]), int(match[4]), side, collective
        if len(self._steps) >= STEPS_MOST:
            self._steps.clear()
        self._steps[text] = step
        return step

    def _path(self, text: str) -> Path | None:
        # Vendor forks append the communicator; its ranks are the same.
        path = read_path(text.partition(" comm 0x")[0].rstrip())
        if path is not None:
            if len(self._paths) > 4096:
                self._paths.clear()
            self._paths[text] = path
        return path

    @staticmethod
    def _in_host(comm: Comm, path: Path, pair: int, at: At) -> None:
        if path.kind == "SHM":
            comm.shm_pairs.setdefault(pair, at)
        elif path.kind == "P2P/indirect":
            comm.indirect.setdefault(pair, at)

    @staticmethod
    def _over_net(
        comm: Comm,
        proc: Process,
        key: tuple[int, int, int],
        path: Path,
        at: At,
        *,
        side: int,
        collective: bool,
    ) -> None:
        comm.nets.setdefault(path.net, at)
        comm.net_pairs.setdefault(key[1] << 24 | key[2], at)
        if collective:
            if side == 0:
                comm.nic_use[proc.host, path.net, path.device] += 1
            if path.proxy < 0 or side:
                comm.rails.setdefault(key, [-1, -1])[side] = path.device

    def _listing(self, proc: Process, tid: int, text: str, at: At) -> bool:
        match = _LISTING.fullmatch(text.rstrip())
        if match is None:
            return False
        ranks = tuple(int(word) for word in match[3].split())
        if match[2] is None and len(ranks) < 2:
            return False  # rather the beginning of a connection
        comm = self._owner(proc, tid, 0)
        if comm is None:
            return True
        comm.listing_at = comm.listing_at or at
        comm.channels = int(match[2]) if match[2] else comm.channels
        complete = len(ranks) == comm.nranks and set(ranks) == set(range(len(ranks)))
        early = (
            comm.order < 0 and len(ranks) != LISTED_MOST and set(ranks) == set(range(len(ranks)))
        )
        if match[4] or not (complete or early):
            comm.listing_cut = True
        else:
            comm.listings[int(match[1])] = ranks
        return True

    def ring(self, proc: Process, tid: int, text: str, at: At) -> None:
        """``Ring 00 : a -> r -> b`` of the GRAPH subsystem, from every rank."""
        match = _RING.fullmatch(text)
        if match is None:
            if old := _OLD_STEP.fullmatch(text):
                step = f"Channel {old[1]} : {old[2]}[0] -> {old[3]}[0]{old[4] or ''} via {old[5]}"
                self.channel(proc, tid, step, at)
            return
        rank = int(match[3])
        comm = self._owner(proc, tid, rank)
        if comm is not None and self._job.ring_steps < RING_EDGES_MOST:
            self._job.ring_steps += 1
            comm.graph_next[int(match[1]) << 24 | rank] = int(match[4])
            proc.seen.add("GRAPH")

    def tree(self, proc: Process, tid: int, text: str) -> None:
        """``Trees [0] down->me->up ...``: the first channel's tree."""
        match = _TREE.search(text[:200])
        if match is None:
            return
        comm = self._owner(proc, tid, int(match[3]))
        if comm is not None and len(comm.trees) < RING_EDGES_MOST:
            down = tuple(rank for rank in map(int, match[2].split("/")) if rank >= 0)
            comm.trees[int(match[3])] = (down, int(match[4]))

    def collnet(self, proc: Process, text: str) -> None:
        """In-network reduction is in use: network traffic of that device."""
        match = _COLLNET.fullmatch(text)
        comm = max(proc.comms, key=lambda each: each.nranks, default=None)
        if match is None or comm is None:
            return
        comm.collnet += 1
        if match[1] == "send":
            comm.nic_use[proc.host, match[2], int(match[3])] += 1

    def speaker(self, proc: Process, tid: int) -> tuple[Comm, Member] | None:
        """The communicator and rank of a line that names neither, where only one can be meant."""
        begun = proc.by_tid.get(tid)
        if begun is not None:
            comm, rank = begun
        elif len(proc.comms) == 1 and len(next(iter(proc.comms.values()))) == 1:
            comm, ranks = next(iter(proc.comms.items()))
            rank = next(iter(ranks))
        else:
            return None
        member = comm.members.get(rank)
        return None if member is None else (comm, member)

    def connected(self, proc: Process, tid: int, what: str) -> None:
        """``Connected all rings``: what was connected before are ring steps; else they are not."""
        spoken = self.speaker(proc, tid)
        if spoken is None:
            return
        comm, member = spoken
        if what == "rings":
            for key, target in member.pending:
                if self._job.ring_steps < RING_EDGES_MOST:
                    self._job.ring_steps += 1
                    comm.ring_next[key] = target
            member.connected = True
        member.pending.clear()
