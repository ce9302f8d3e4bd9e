"""What was measured: one step, one rank, the whole job. Times are integer nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from statistics import median

from commcheck.lazy import dataclass
from commcheck.trace.names import bus_factor
from commcheck.trace.roles import Role
from commcheck.trace.store import Transfer


@dataclass(frozen=True, slots=True)
class Part:
    """The communication of groups with one role: |C| and |C - K|."""

    comm_ns: int
    exposed_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step on one device.

    With K, C, M the unions over all streams of computing, communication and memory copies in the
    window: ``compute_ns`` = |K|, ``exposed_ns`` = |C - K|, ``mem_extra_ns`` = |M - (K | C)|, and
    always window = compute + exposed + mem_extra + idle.
    """

    name: str
    start: int
    end: int
    host_ns: int | None  # duration of ProfilerStep#k
    compute_ns: int
    comm_ns: int
    mem_ns: int
    overlapped_ns: int  # |C & K|
    exposed_ns: int
    exposed_strict_ns: int  # |C - (K | M)|
    exposed_judged_ns: int  # exposed by what could hide: without the three that follow
    bubble_ns: int  # |send and receive of pipeline stages - K|
    untold_ns: int = 0  # |send and receive of nobody knows what - K|
    exposed_tensor_ns: int = 0  # exposed by nothing but tensor-parallel groups
    longest_blank_ns: int | None  # the longest single stretch of exposed communication
    mem_extra_ns: int
    idle_ns: int
    # Gaps on the busiest compute stream that the next kernel's launch ended in, whole.
    host_gap_ns: int | None
    host_wait_ns: int | None  # of that stream: it waits for the host's launch and nothing else
    pause_ns: int = 0  # of host_wait_ns: in gaps that no launch is as long as
    longest_pause_ns: int = 0
    host_comm_ns: int = 0  # of pause_ns: while the host is in a collective of its own, as gloo's
    input_ns: int = 0  # of idle_ns: while the host waits for its next batch; not in host_wait_ns
    exposed_unfed_ns: int = 0  # of exposed_judged_ns: with a kernel launched in time it were hidden
    kernels: int
    comm_kernels: int
    forward_ns: int | None
    gather_ns: int | None  # all-gather within the forward pass
    gather_exposed_ns: int | None
    roles: Mapping[Role, Part] = field(default_factory=dict)

    @property
    def time_ns(self) -> int:
        """The step time: the length of its window."""
        return self.end - self.start

    def part(self, role: Role) -> Part:
        """The communication with a role; where none is told apart, all of it has the last one."""
        whole = Part(self.comm_ns, self.exposed_judged_ns)
        return self.roles.get(role, Part(0, 0) if self.roles or role != Role.OTHER else whole)


@dataclass(frozen=True, slots=True)
class Moved:
    """All collectives of one kind, group and rank: count, bytes, time, and counts by size."""

    kind: str
    group: str
    group_size: int
    about: str
    count: int
    time_ns: int
    sized: int  # how many of them told their size
    sized_ns: int
    size_bytes: int
    sizes: Mapping[int, int]
    small_ns: int  # time in collectives below ``collectives.SMALL_BYTES``
    tiny_ns: int  # the same below 64 kB
    tiny_count: int

    @property
    def algbw_gbytes(self) -> float | None:
        """Sum of bytes by sum of time, in GB/s; None where no size is told."""
        return self.size_bytes / self.sized_ns if self.sized_ns and self.sized else None

    @property
    def busbw_gbytes(self) -> float | None:
        """algbw times the collective's factor; None where size or group are not told."""
        if self.algbw_gbytes is None or not self.group_size:
            return None
        return self.algbw_gbytes * bus_factor(self.kind, self.group_size)


@dataclass(frozen=True, slots=True)
class Call:
    """One collective on one rank. ``start`` and ``end`` since 1970, or the trace's own zero."""

    step: int
    transfer: Transfer
    seq: int
    stream: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Lane:
    """A row of the picture: spans of (start, end, kind, label)."""

    name: str
    spans: tuple[tuple[int, int, str, str], ...]


@dataclass(frozen=True, slots=True)
class Link:
    """What went over one kind of way of an NPU: HCCS, RDMA, PCIE, SDMA, SIO."""

    name: str
    size_bytes: int
    time_ns: int

    @property
    def gbytes(self) -> float:
        """In GB/s."""
        return self.size_bytes / self.time_ns


@dataclass(frozen=True, slots=True)
class Hccl:
    """What HCCL's operators themselves counted on one rank, over all steps."""

    count: int
    moved_ns: int  # data on its way
    waited_ns: int  # for the peer
    links: tuple[Link, ...]

    @property
    def waited(self) -> float | None:
        """Waiting by waiting and moving; None where they took no time."""
        whole = self.waited_ns + self.moved_ns
        return self.waited_ns / whole if whole else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFacts:
    """What one rank's trace says."""

    file: str
    rank: int | None
    device: str
    layout: str
    host: str
    world: int | None
    backend: str
    library: str
    framework: str
    steps: tuple[Step, ...]
    moved: tuple[Moved, ...]
    calls: tuple[Call, ...]
    lanes: tuple[Lane, ...]
    lanes_of: str  # the step that the lanes show
    outside: int  # device events of no step
    unlinked: int  # device events whose launch is not in the trace
    records: int  # collective calls on the host
    pipes: frozenset[str] = frozenset()  # groups of its pipeline's stages; "" for one untold
    began_ns: int = 0  # its first step, since 1970 or the trace's own zero; 0: not told
    notes: tuple[str, ...] = ()
    hccl: Hccl | None = None

    @property
    def name(self) -> str:
        """How a report names it: ``rank 3``, else the file."""
        return self.file if self.rank is None else f"rank {self.rank}"

    @property
    def accelerator(self) -> str:
        """The kind: "gpu", "npu" by HCCL, torch_npu or what sums its files up, or "" for CPUs."""
        other = "npu" if self.backend == "hccl" else "gpu"
        return {"ascend": "npu", "table": "npu", "cpu": ""}.get(self.layout, other)

    @property
    def median_ns(self) -> int:
        """Median step time."""
        return int(median(step.time_ns for step in self.steps))

    def share(self, of: str) -> float | None:
        """The median over steps of a field's share of the step time; None where it is not known."""
        shares = [
            value / step.time_ns
            for step in self.steps
            if (value := getattr(step, of)) is not None and step.time_ns
        ]
        return float(median(shares)) if shares else None

    @property
    def overlap(self) -> float | None:
        """Overlapped by communication time over all steps; None without communication."""
        comm = sum(step.comm_ns for step in self.steps)
        return sum(step.overlapped_ns for step in self.steps) / comm if comm else None


def most_exposed(ranks: Sequence[RankFacts]) -> RankFacts:
    """The rank whose step has most exposed that could hide, then most of what cannot."""
    return max(
        ranks,
        key=lambda rank: (
            rank.share("exposed_judged_ns") or 0.0,
            rank.share("exposed_tensor_ns") or 0.0,
        ),
    )


@dataclass(frozen=True, slots=True)
class Skew:
    """How far apart ranks start the collectives that they take part in together.

    ``late_ns`` and ``wait_ns`` are by rank: mean start behind the first, and time waited for the
    last. ``late_step_ns``: how long in a step others wait for it, median over steps.
    ``offset_ns``: each rank's clock against the first one's.
    """

    ranks: tuple[str, ...]
    collectives: int
    mean_ns: int
    most_ns: int
    step_ns: int  # of a step: of the rank whose collectives are waited in longest, by anybody
    late_ns: tuple[int, ...]
    late_step_ns: tuple[int, ...]
    wait_ns: tuple[int, ...]
    comm_ns: tuple[int, ...]  # time in these collectives, by rank
    mates_ns: tuple[int, ...]  # the least that another rank spends in those of each
    offset_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Wire:
    """Bandwidth of one kind and group. Late ranks do not wait, so their time is the wire's."""

    kind: str
    group: str
    group_size: int
    count: int
    size_bytes: int
    time_ns: int
    includes_waiting: bool  # one rank only: nothing tells the wire from the waiting

    @property
    def busbw_gbytes(self) -> float:
        """In GB/s."""
        return self.size_bytes / self.time_ns * bus_factor(self.kind, self.group_size)


@dataclass(frozen=True, slots=True)
class JobFacts:
    """All ranks, and what only several together tell."""

    ranks: tuple[RankFacts, ...]
    skew: Skew | None
    wires: tuple[Wire, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def world(self) -> int | None:
        """How many ranks the job has, as the traces tell; at least as many as there are files."""
        told = [rank.world for rank in self.ranks if rank.world]
        told += [move.group_size for rank in self.ranks for move in rank.moved]
        if len(self.ranks) > 1:
            told.append(len(self.ranks))
        return max(told, default=None)
