"""The nouns of commcheck: subjects, verdicts and the one truth table that ranks them.

Nothing here does I/O or imports another module of ours. Facts (``Machine``, ``Rail``,
``Accelerator``) and expectations (``Wanted``) are never one object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from functools import cache
from typing import Final, Generic, TypeVar

from commcheck.lazy import dataclass

T = TypeVar("T")


class Layer(StrEnum):
    """The four layers, in the order of the climb."""

    PHYSICAL = "physical"
    LIBRARY = "library"
    RUNTIME = "runtime"
    APPLICATION = "application"

    @property
    def height(self) -> int:
        """1 for the lowest layer."""
        return _HEIGHTS[self]

    @classmethod
    def of(cls, check_id: str) -> Layer:
        """The layer in a check id: ``physical.pfc-enabled`` -> physical."""
        return _layer_of(check_id)


@cache
def _layer_of(check_id: str) -> Layer:
    return Layer(check_id.partition(".")[0])


_HEIGHTS = {layer: height for height, layer in enumerate(Layer, start=1)}


class Status(StrEnum):
    """What a check found."""

    PASS = "pass"  # noqa: S105 - a status, not a password
    WARN = "warn"
    FAIL = "fail"
    ERROR = "error"
    SKIP = "skip"


class Kind(StrEnum):
    """Why there is no plain pass, warn or fail."""

    NONE = ""
    HOST = "host"  # error: the host as a whole
    CHECK = "check"  # error: this check only
    NOT_APPLICABLE = "not-applicable"
    BLOCKED = "blocked"
    GATED = "gated"
    WAIVED = "waived"
    NOT_PERMITTED = "not-permitted"
    BUSY = "busy"
    UNDECIDABLE = "undecidable"


# --- hosts and what is found on them ------------------------------------------------------------

PLATFORMS = ("gpu-roce", "gpu-ib", "gpu-efa", "gpu-tcp", "ascend")
GPUS = frozenset(PLATFORMS) - {"ascend"}
"""Platforms with NVIDIA's driver. ``gpu-tcp``: hosts that by design have no RDMA device."""
UNKNOWN = "unknown"
"""The platform of a host that neither declares one nor shows one."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was set, as a person would look for it: ``inventory/group_vars/gpu.yml:4``."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Host:
    """A host of the inventory: names, merged variables and where each was set."""

    name: str
    variables: Mapping[str, object] = field(default_factory=dict)
    origins: Mapping[str, Origin] = field(default_factory=dict)
    groups: tuple[str, ...] = ()  # every group it is in, outermost first, without "all"
    origin: Origin = Origin("the command line")
    platform_group: str = ""  # the deepest group that fixes its platform, if one does

    def origin_of(self, variable: str) -> Origin:
        """Where a variable was set; the host's own place where that is not known."""
        return self.origins.get(variable, self.origin)


BLUEFIELD_IDS: Final = frozenset({0xA2D2, 0xA2D6, 0xA2DC, 0xA2DF})
"""PCI device ids of the NIC inside BlueField 1 to 4 (pci.ids, vendor 15b3)."""


MEMBER: Final = ":"
"""Between the rail of a bond and the netdev of one of its ports, in names of subjects."""


def on_one_rail(one: str, other: str) -> bool:
    """True for names of the same subject, or of a bond's rail and one of its ports."""
    return other in (one, one.partition(MEMBER)[0]) or one == other.partition(MEMBER)[0]


@dataclass(frozen=True, slots=True)
class Rail:
    """One NIC port and its path through the fabric, as found: facts only.

    ``present=False``: the inventory names it and the host does not have it.
    ``fabric=None``: nothing tells whether it carries training traffic. ``pci_id``: device id of
    the card. ``qos_on_arm``: a BlueField whose Arm side, and not this host, owns the port's QoS.
    ``ports``: the physical ports of a bond, each a rail of its own but for ``bond``, its netdev.
    """

    index: int
    hca: str
    port: int = 1
    netdev: str | None = None
    link_layer: str | None = None  # "Ethernet", "InfiniBand"
    driver: str | None = None
    pci: str | None = None
    state: str | None = None  # "ACTIVE", "DOWN", "INIT"
    phys_state: str | None = None  # "LinkUp", "Disabled", "Polling"
    is_vf: bool = False
    present: bool = True
    fabric: bool | None = None
    pci_id: int | None = None
    qos_on_arm: bool = False
    ports: tuple[Rail, ...] = ()
    bond: str | None = None

    @property
    def label(self) -> str:
        """The subject's name in reports, stable while the HCA keeps its name."""
        rail = self.hca if self.port == 1 else f"{self.hca}/{self.port}"
        return rail if self.bond is None else f"{rail}{MEMBER}{self.netdev}"

    @property
    def is_bluefield(self) -> bool:
        """True for the NIC of a BlueField, as the host sees it."""
        return self.driver == "mlx5_core" and self.pci_id in BLUEFIELD_IDS

    @property
    def bnxt_pci(self) -> str | None:
        """The PCI address as niccli lists it, for a command's place; None: no Broadcom card."""
        match = re.fullmatch(r"[0-9a-f]*([0-9a-f]{2}:..:..)\.([0-7])", self.pci or "")
        return f"{match[1]}:0{match[2]}" if match and self.driver == "bnxt_en" else None


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One GPU or NPU, as found."""

    index: int  # of an NPU: its physical chip id, which hccn_tool is asked by
    vendor: str  # "nvidia", "ascend"
    pci: str | None = None

    @property
    def label(self) -> str:
        """The subject's name in reports."""
        return f"{'npu' if self.vendor == 'ascend' else 'gpu'}{self.index}"


@dataclass(frozen=True, slots=True)
class Machine:
    """The host as found: facts from the runner's first frame, and its rails and accelerators."""

    name: str
    platform: str = UNKNOWN
    hostname: str = ""
    kernel: str = ""
    boot_id: str = ""
    uid: int | None = None
    root: str = "refused"  # "self", "sudo" or "refused"
    in_vm: bool = False  # a guest: bus, NUMA nodes and IOMMU are what its host gives it
    in_container: bool = False  # of a guest, too: then both are so
    rails: tuple[Rail, ...] = ()
    other_ports: tuple[Rail, ...] = ()  # management, storage, dark second ports: not judged
    accelerators: tuple[Accelerator, ...] = ()
    for_guests: tuple[str, ...] = ()  # PCI addresses of more of them, which vfio-pci holds
    nccl_log: str | None = None  # as the inventory names it: path or glob of a job's logs
    traces: str | None = None  # the same of its profiler traces, or their folder
    pod: str | None = None  # its name, where its log is the one that its container writes

    @property
    def label(self) -> str:
        """Empty: a verdict on the host itself needs no further name."""
        return ""

    @property
    def npus(self) -> str | None:
        """The ids of its NPUs with colons between, for a command's place; None: it has none."""
        ids = (each.index for each in self.accelerators if each.vendor == "ascend")
        return ":".join(map(str, ids)) or None


Subject = Machine | Rail | Accelerator


# --- expectations -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wanted(Generic[T]):
    """A value that should be, with where it comes from."""

    value: T
    origin: Origin

    def __str__(self) -> str:
        return f"{self.value}"


@dataclass(frozen=True, slots=True)
class Bound:
    """A threshold or expectation in force for a verdict, as the reports show it."""

    name: str
    value: object
    origin: str
    unit: str = ""


# --- causes and verdicts ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Words:
    """A text for people, in both languages."""

    en: str
    zh: str


@dataclass(frozen=True, slots=True)
class Remedy:
    """What mends a cause. Only ever printed, never executed.

    ``command`` may hold places like ``{netdev}``; it is empty where no command helps. ``driver``:
    the kernel driver of the only cards that it knows; "" where it knows all. ``accelerator``: the
    same of "gpu" or "npu".
    """

    command: str
    effect: Words
    precondition: Words
    who: str = "operator"  # "operator", "network team", "vendor", "security owner"
    # Only say which are told of a host: no part of a run's record.
    driver: str = field(default="", compare=False, repr=False)
    accelerator: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Cause:
    """Something a check can find. ``slug`` is stable for ever: Jenkins shows it as the type.

    ``everywhere``: what it may mean instead where every host that was judged has it.
    """

    slug: str
    title: Words
    meaning: Words
    remedies: tuple[Remedy, ...]
    everywhere: Words | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture that belongs to a verdict, as data; ``report.charts`` draws it.

    ``form`` names the kind of drawing and settles the shape of ``data``, which is plain JSON.
    """

    form: str
    title: Words
    data: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The judgement of one check on one subject. ``reason`` is one line and never empty."""

    status: Status
    kind: Kind = Kind.NONE
    reason: str
    cause: Cause | None = None
    error: str = ""  # class of the error, for status error
    remedies: tuple[Remedy, ...] = ()  # places filled in
    measured: Mapping[str, object] = field(default_factory=dict)  # unit in each key
    rule: str = ""
    hosts: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    follows: str = ""  # slug of the cause found below of which this is a consequence
    advisory: bool = False  # of what is waived: it was a warning, so nothing follows from it

    def __post_init__(self) -> None:
        """Refuse what no report could show honestly."""
        if not self.reason.strip():
            raise ValueError("a verdict needs a reason")
        if (self.status, self.kind) not in TABLE:
            raise ValueError(f"no verdict is {self.status} and {self.kind or 'of no kind'}")
        if self.status is Status.FAIL and not (self.cause and self.remedies):
            raise ValueError(f"a fail needs a cause and a remedy: {self.reason}")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One command whose output a verdict rests on; the bytes are in the host's frames."""

    key: str
    rc: int | None
    seconds: float
    head: str  # cleaned text, capped
    truncated: bool = False
    used: bool = True  # False: a fallback that did not speak


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A verdict with what the engine knows of it: subject, bounds in force, evidence."""

    check: str
    host: str
    subject: str  # "" for the host itself, else the rail's or accelerator's label
    verdict: Verdict
    bounds: tuple[Bound, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    unproven_below: tuple[str, ...] = ()  # checks of lower layers that could not be judged here


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A check on a host (or ``@group``): its findings, folded."""

    check: str
    host: str
    findings: tuple[Finding, ...]
    seconds: float = 0.0  # remote time of the commands it read
    retried: int = 0  # how often it was launched again before it proved something
    # What the host holds of a thing that several hosts have parts of; not kept in the run's folder.
    part: object = field(default=None, compare=False, repr=False)

    @property
    def worst(self) -> Finding:
        """The finding that stands for the whole, by the truth table."""
        if len(self.findings) == 1:  # asked often, of mostly one
            return self.findings[0]
        return min(self.findings, key=lambda finding: _rank(finding.verdict))

    @property
    def status(self) -> Status:
        """The folded status."""
        return self.worst.verdict.status

    @property
    def kind(self) -> Kind:
        """The folded kind."""
        return self.worst.verdict.kind


# --- the truth table ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the truth table: what a status and kind mean everywhere.

    ``gates``: "host" where the host takes no part in higher layers.
    ``exit_code``: what it alone makes the run's exit code; None where another check decides it.
    ``exit_if_everywhere``: the code if nothing of that check was judged on any host.
    ``junit``: "pass", "warn", "failure", "error" or "skipped".
    ``judged``: the layer may count the host as judged by it.
    """

    rank: int  # 0 is worst: the fold takes the lowest
    gates: bool
    exit_code: int
    exit_if_everywhere: int
    junit: str
    judged: bool


TABLE: Mapping[tuple[Status, Kind], Row] = {
    (Status.FAIL, Kind.NONE): Row(0, True, 1, 1, "failure", True),
    (Status.ERROR, Kind.HOST): Row(1, True, 3, 3, "error", False),
    (Status.ERROR, Kind.CHECK): Row(2, False, 3, 3, "error", False),
    (Status.WARN, Kind.NONE): Row(3, False, 0, 0, "warn", True),
    (Status.SKIP, Kind.UNDECIDABLE): Row(4, False, 0, 3, "skipped", False),
    (Status.SKIP, Kind.BUSY): Row(5, False, 0, 3, "skipped", False),
    (Status.SKIP, Kind.BLOCKED): Row(6, False, 0, 0, "skipped", False),
    (Status.SKIP, Kind.GATED): Row(7, False, 0, 0, "skipped", False),
    (Status.SKIP, Kind.NOT_PERMITTED): Row(8, False, 0, 0, "skipped", False),
    (Status.SKIP, Kind.WAIVED): Row(9, False, 0, 0, "skipped", True),
    (Status.PASS, Kind.NONE): Row(10, False, 0, 0, "pass", True),
    (Status.SKIP, Kind.NOT_APPLICABLE): Row(11, False, 0, 0, "skipped", True),
}


def row(verdict: Verdict) -> Row:
    """The truth table's row of a verdict."""
    return TABLE[(verdict.status, verdict.kind)]


def _rank(verdict: Verdict) -> int:
    return row(verdict).rank


def gates(result: Result) -> bool:
    """True where the host takes no part in the layers above."""
    return row(result.worst.verdict).gates
