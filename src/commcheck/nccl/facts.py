"""The facts of a job's NCCL logs: processes, communicators, paths and errors. Only facts.

Built up by one pass over the lines, aggregated as they come: edges are counters, never a list, so
that a job of ten thousand ranks fits in memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final, Literal

from commcheck.lazy import dataclass
from commcheck.nccl.hccl import Hccl
from commcheck.nccl.places import At

RING_EDGES_MOST: Final = 2_000_000
"""Ring steps kept over all communicators: 32,768 ranks with 32 channels need a million."""

ERRORS_PER_PROCESS: Final = 40
"""First errors kept of each process. What follows is only counted: it is never the root."""

UNKNOWN_PER_PROCESS: Final = 4
"""Of those that no form knows: many of them must not hide a later one that is known."""

LADDERS_PER_PROCESS: Final = 8

SAMPLES_MOST: Final = 200


@dataclass(frozen=True, slots=True)
class Nic:
    """One entry of ``NET/IB : Using``: index, ``mlx5_0``, port and ``IB``, ``RoCE`` or other.

    A merged device has several names, joined by ``+``.
    """

    index: int
    name: str
    port: int
    link: str


@dataclass(frozen=True, slots=True)
class Error:
    """One warning that says something went wrong, by kind; ``values`` are its parts, as text."""

    kind: str
    text: str
    at: At
    proc: Process
    time_s: float | None = None
    secondary: bool = False
    values: Mapping[str, str] = field(default_factory=dict)


_KERNEL: Final = frozenset({"tcp", "sockets", "udp"})
"""Providers of libfabric that need no RDMA device (libfabric's fi_provider(7))."""


@dataclass(slots=True)
class Ladder:
    """An error on its way up through NCCL: one line ``file:line -> code`` for each call."""

    tid: int
    code: int  # 1 CUDA, 2 system, 3 internal, 4 argument, 5 usage, 6 remote, 8 time-out
    first: str
    last: str
    at: At


@dataclass(slots=True, eq=False)
class Process:
    """One process of the job, as its own lines show it."""

    host: str
    pid: int
    first: At
    files: set[int] = field(default_factory=set)
    lines: int = 0
    held: list[Callable[[], None]] | None = field(default_factory=list)  # None: it surely exists
    version: tuple[int, int, int] | None = None
    cuda_built: tuple[int, int] | None = None
    driver: int | None = None
    network: str | None = None
    network_at: At | None = None
    provider: str | None = None  # of libfabric: "efa", "cxi", "tcp;ofi_rxm"
    provider_at: At | None = None
    ofi_nics: int | None = None  # that libfabric's plugin found
    nics: tuple[Nic, ...] | None = None
    nics_at: At | None = None
    no_device: At | None = None
    oob: tuple[str, str] | None = None
    oob_at: At | None = None
    env: dict[str, str] = field(default_factory=dict)
    local_rank: int | None = None
    global_rank: int | None = None
    seen: set[str] = field(default_factory=set)  # subsystems that surely were logged
    by_pointer: dict[str, Comm] = field(default_factory=dict)
    by_tid: dict[int, tuple[Comm, int]] = field(default_factory=dict)  # begun last, and its rank
    unnamed: dict[str, tuple[int, re.Match[str], At]] = field(default_factory=dict)
    names_late: bool = False  # a version that prints channels before it names the communicator
    comms: dict[Comm, set[int]] = field(
        default_factory=dict
    )  # its ranks: one for each GPU it drives
    errors: list[Error] = field(default_factory=list)
    errors_more: int = 0
    ladders: list[Ladder] = field(default_factory=list)
    went_on: At | None = None  # the last line that tells of work done
    gdr: dict[tuple[str, str], tuple[bool, int, int, At]] = field(default_factory=dict)
    gdr_hca: dict[str, tuple[bool, At]] = field(default_factory=dict)
    p2p_refused: At | None = None
    nvls: bool | None = None
    nvls_at: At | None = None
    last: At = (0, 0)

    @property
    def ofi_over_tcp(self) -> bool:
        """True where libfabric carries the plugin's traffic over the host's own TCP or UDP."""
        return bool(_KERNEL & set((self.provider or "").split(";")))

    @property
    def label(self) -> str:
        """How reports name it."""
        return f"{self.host} pid {self.pid}" if self.pid else self.host or "unknown process"


@dataclass(slots=True, eq=False)
class Member:
    """A rank of a communicator: who it is and how far it came."""

    proc: Process
    at: At
    start: bool = False
    complete: bool = False
    complete_s: float | None = None
    gone: bool = False
    cuda_dev: int | None = None
    nvml_dev: int | None = None
    local_ranks: int | None = None  # on its node, as NCCL counts them
    bus: str = ""
    channels: int | None = None
    connected: bool = False
    ring_gdr: bool | None = None
    init_s: float | None = None
    init_shares: str = ""
    pending: list[tuple[int, int]] = field(default_factory=list)  # steps before "Connected all ..."
    net: list[int] = field(default_factory=lambda: [0, 0, 0, 0])  # send/receive plain, with GDR


@dataclass(slots=True, eq=False)
class Comm:
    """One communicator, over all processes."""

    key: tuple[object, ...]
    nranks: int
    order: int
    members: dict[int, Member] = field(default_factory=dict)
    sizes: dict[int, dict[str, At]] = field(default_factory=dict)  # as its ranks say it, by host
    nodes: int | None = None
    nodes_at: At | None = None
    mnnvl: bool | None = None
    channels: int | None = None  # as the ring listing says
    listings: dict[int, tuple[int, ...]] = field(default_factory=dict)
    listing_at: At | None = None
    listing_cut: bool = False
    ring_next: dict[int, int] = field(default_factory=dict)  # channel << 24 | rank -> next rank
    graph_next: dict[int, int] = field(default_factory=dict)
    trees: dict[int, tuple[tuple[int, ...], int]] = field(default_factory=dict)
    via: Counter[str] = field(default_factory=Counter)
    nic_use: Counter[tuple[str, str, int]] = field(default_factory=Counter)  # host, net, device
    net_pairs: dict[int, At] = field(default_factory=dict)  # src << 24 | dst
    shm_pairs: dict[int, At] = field(default_factory=dict)
    indirect: dict[int, At] = field(default_factory=dict)
    rails: dict[tuple[int, int, int], list[int]] = field(default_factory=dict)
    nets: dict[str, At] = field(default_factory=dict)
    collnet: int = 0
    ambiguous: int = 0

    def edges(self, kind: Literal["P2P", "SHM", "send", "receive"]) -> int:
        """Channel lines of a kind."""
        if kind in ("send", "receive"):
            return sum(n for via, n in self.via.items() if via.endswith(f"[{kind}]"))
        return sum(n for via, n in self.via.items() if via.startswith(kind))


@dataclass(frozen=True, slots=True)
class Timeout:
    """A watchdog line of PyTorch: a collective that did not end. ``group``: "" where not told."""

    rank: int
    seq: int
    op: str
    timeout_ms: int
    at: At
    group: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a rank's process group came, as PyTorch's watchdog says.

    ``work``: the collective that failed there; None where another rank's failure made it tell.
    """

    rank: int
    group: str
    work: int | None
    enqueued: int
    completed: int
    at: At
    told_by: int | None  # the rank whose timeout made this one dump


@dataclass(frozen=True, slots=True)
class Ended:
    """A line in which PyTorch says that it ends a process. ``stuck``: its watchdog itself hung."""

    text: str
    at: At
    rank: int | None
    stuck: bool


@dataclass(frozen=True, slots=True)
class Diag:
    """One ``NCCL DIAG`` line. ``tag``: ``OK``, ``INFO`` or empty."""

    host: str
    pid: int
    tag: str
    text: str
    at: At


@dataclass(slots=True)
class Stats:
    """How much was read, and how much of it was damaged."""

    lines: int = 0
    nccl_lines: int = 0
    fragments: int = 0
    repeated: int = 0
    unread_records: int = 0  # JSON without a known key that holds a line of NCCL
    unknown_warnings: Counter[str] = field(default_factory=Counter)
    cut_files: list[int] = field(default_factory=list)

    @property
    def damaged_share(self) -> float:
        """Fragments that lost their head or tail, as a share of all NCCL lines."""
        return self.fragments / max(1, self.nccl_lines + self.fragments)


@dataclass(slots=True)
class Job:
    """Everything that the NCCL lines of the input say."""

    files: list[str] = field(default_factory=list)
    procs: dict[tuple[str, int, int], Process] = field(default_factory=dict)  # host, pid, scope
    hosts: set[str] = field(default_factory=set)
    comms: dict[tuple[object, ...], Comm] = field(default_factory=dict)
    stats: Stats = field(default_factory=Stats)
    banners: Counter[str] = field(default_factory=Counter)
    timeouts: list[Timeout] = field(default_factory=list)
    progress: list[Progress] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    diag: list[Diag] = field(default_factory=list)
    pasted_env: dict[str, str] = field(default_factory=dict)
    pasted_gids: list[dict[str, str]] = field(default_factory=list)
    rank_hosts: dict[int, str] = field(default_factory=dict)  # as nccl-tests prints them
    hccl: Hccl = field(default_factory=Hccl)
    rccl: At | None = None
    torch_version: tuple[int, int, int] | None = None
    simple_order: dict[str, At] = field(default_factory=dict)
    retrying: int = 0
    refused: dict[str, str] = field(default_factory=dict)  # peers tried again, and why
    ring_steps: int = 0
    file_age_s: dict[int, float] = field(default_factory=dict)
    unreadable: dict[int, str] = field(default_factory=dict)  # why a file's rest was not read
    live: bool = False  # only logs of processes that run now were found: who ended has none

    def where(self, at: At) -> str:
        """``file:line``."""
        name = self.files[at[0]] if at[0] < len(self.files) else "?"
        return f"{name}:{at[1]}"
