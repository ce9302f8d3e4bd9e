"""Environments with the place of every value, and the facts of hosts they are held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from commcheck.formats.gid_table import Gid
from commcheck.formats.pci_tree import PciTree
from commcheck.formats.qos import Qos
from commcheck.lazy import dataclass
from commcheck.nccl.environment.names import Version, is_kept
from commcheck.nccl.environment.ranktable import RankTable
from commcheck.nccl.environment.values import Number, number
from commcheck.nccl.job_files import NamedFile

ECHO: Final = "log"
"""Kind of an environment that a log echoes: only what was read, and as NCCL parsed it."""

CONF: Final = "conf"
"""Kind of an environment that configuration files alone make: what every job begins with."""


SHM_DEFAULT: Final = 64 << 20
"""Bytes of /dev/shm that a container runtime gives where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and where it was set: ``/etc/nccl.conf:3``, ``pid 4711``, ``pod.yaml (train)``."""

    value: str
    where: str


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of variables. ``ignored``: lines that set nothing, as (where, line).

    ``untold``: by name, where a variable is set to what nobody can read here: another source's
    value, or what a shell computes. ``unread``: files that also set variables. ``lost``: why
    settings reach no rank, in whole sentences.
    """

    settings: Mapping[str, Setting]
    ignored: tuple[tuple[str, str], ...] = ()
    untold: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The effective variables of one or several processes that have the same.

    ``kind``: "process", "dump", "pod", "ray", "document", "script", ``ECHO`` or ``CONF``.
    ``unread``: sources that also count and were not read; ``untold``: by name, where a variable is
    set, to what is not known; ``lost``: why settings reach no rank; ``strange``: variables that the
    file names in a form that is not read. ``shm_bytes``: of the container's /dev/shm, -1 without a
    limit of its own; None: not known. ``lacks_rdma``: nothing gives the container a device for
    RDMA. ``job``: where its ranks meet, "gpu-01:29500", "" where that
    is not known; of files it is left open, since whoever gives several means one job.
    """

    who: tuple[str, ...]
    kind: str
    host: str = ""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    ignored: tuple[tuple[str, str], ...] = ()
    version: Version | None = None
    torch: Version | None = None
    unread: tuple[str, ...] = ()
    untold: Mapping[str, str] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    shm_bytes: int | None = None
    gpus: int | None = None
    lacks_rdma: bool = False
    job: str = ""
    strange: tuple[str, ...] = ()

    @property
    def partial(self) -> bool:
        """True where a name that is absent may be set all the same."""
        return self.kind in (ECHO, CONF) or (self.kind != "process" and bool(self.unread))

    def is_unset(self, name: str) -> bool:
        """True where it is sure that nobody sets it."""
        return self.get(name) is None and name not in self.untold and not self.partial

    def get(self, name: str) -> str | None:
        """The value, or None where it is unset (an empty one is)."""
        found = self.settings.get(name)
        return found.value if found is not None and found.value else None

    def number(self, name: str) -> Number | None:
        """The value as NCCL reads a number."""
        value = self.get(name)
        return None if value is None else number(value)

    def int(self, name: str) -> int | None:
        """The number alone."""
        found = self.number(name)
        return None if found is None else found.value

    def where(self, name: str) -> str:
        """Where the value was set."""
        return self.settings[name].where if name in self.settings else ""

    def show(self, name: str) -> str:
        """``NCCL_IB_TC=26 (pod.yaml (train))``."""
        value = self.get(name)
        if value is None:
            return f"{name} unset"
        shown = value if len(value) <= 80 else f"{value[:77]}..."
        quoted = shown if shown.isprintable() and shown == shown.strip() else repr(shown)
        return f"{name}={quoted} ({self.where(name)})"

    @property
    def shown_untold(self) -> tuple[str, ...]:
        """``NCCL_IB_TC (pod.yaml (train))``: of the libraries' own variables that are untold."""
        return tuple(f"{name} ({at})" for name, at in sorted(self.untold.items()) if "CCL_" in name)

    @property
    def spans_hosts(self) -> bool | None:
        """True where the job has ranks on several hosts; None where nothing tells."""
        world, local = self.int("WORLD_SIZE"), self.int("LOCAL_WORLD_SIZE")
        if world is None:
            return None
        if local:
            return world > local
        return True if world > 16 else None


@dataclass(frozen=True, slots=True)
class Port:
    """One RDMA port of a host, as far as it is known. ``tclass``: forced by the driver."""

    hca: str
    number: int = 1
    link: str | None = None  # "Ethernet", "InfiniBand"
    active: bool | None = None
    qos: Qos | None = None
    tclass: int | None = None
    tclass_known: bool = False
    gids: tuple[Gid, ...] | None = None
    is_vf: bool = False  # its settings are those of the machine below


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What is known of a host. None is not known, never "no".

    ``rail_netdevs``: those of ``netdevs`` that belong to NICs for training. ``ecmp``: the fabric
    spreads flows by a hash. ``flat``: no bridge between GPUs, NICs and the root of PCI.
    ``locked_bytes``, ``shm_bytes``: the least that a rank has; -1 is without limit.
    """

    name: str = ""
    ports: tuple[Port, ...] | None = None
    netdevs: tuple[str, ...] | None = None
    rail_netdevs: frozenset[str] = frozenset()
    rails: tuple[str, ...] | None = None  # HCAs that carry training traffic
    rdma: bool | None = None
    link: str | None = None  # "Ethernet", "InfiniBand"
    nvlink: bool | None = None
    hopper: bool | None = None  # or newer, with NVSwitches
    gdr: bool | None = None
    peermem: bool | None = None
    rail_only: bool | None = None
    ecmp: bool | None = None
    lossless: bool | None = None
    network: str | None = None  # the plugin's name, where one is expected
    known: tuple[str, ...] = ()  # beginnings of variables that the site's plugins own
    npu_pfc: frozenset[int] | None = None
    files: tuple[NamedFile, ...] | None = None  # that the ranks' variables name
    pci: PciTree | None = None
    flat: bool | None = None
    virtual: bool | None = None
    virtual_topology: bool = False  # the image has a file that NCCL finds by itself
    locked_bytes: int | None = None
    shm_bytes: int | None = None
    marking: tuple[Port, ...] = ()  # what is known of marks, where the ports' names are not


NOTHING: Final = HostFacts()


@dataclass(frozen=True, slots=True)
class Case:
    """What is judged: the environments of one job, its rank tables, the facts of its hosts."""

    environments: tuple[Environment, ...]
    hosts: Mapping[str, HostFacts] = field(default_factory=dict)
    tables: tuple[RankTable, ...] = ()

    def facts(self, environment: Environment) -> HostFacts:
        """Of the environment's host; ``""`` holds for all that are not named."""
        return self.hosts.get(environment.host) or self.hosts.get("") or NOTHING

    @property
    def ranks(self) -> tuple[Environment, ...]:
        """Environments of processes, without what only configuration files say."""
        return tuple(each for each in self.environments if each.kind != CONF)


def effective(layers: Sequence[Layer]) -> tuple[dict[str, Setting], tuple[tuple[str, str], ...]]:
    """The variables in force, the strongest layer first, and all lines that set nothing.

    A file only adds what is not there yet; so an empty variable of the process keeps a file's
    value away, and then counts as unset (NCCL src/misc/param.cc).
    """
    found: dict[str, Setting] = {}
    for place, layer in enumerate(layers):
        above = untold(layers[:place])
        for name, setting in layer.settings.items():
            if is_kept(name) and name not in above:
                found.setdefault(name, setting)
    return found, tuple(each for layer in layers for each in layer.ignored)


def untold(layers: Sequence[Layer]) -> dict[str, str]:
    """Where variables are set to what is not known, by name; not those a stronger layer tells."""
    found: dict[str, str] = {}
    told: set[str] = set()
    for layer in layers:
        for name, where in layer.untold.items():
            if name not in told:
                found.setdefault(name, where)
        told |= layer.settings.keys()
    return found


PER_RANK: Final = frozenset(
    {"RANK", "LOCAL_RANK", "CUDA_VISIBLE_DEVICES", "NCCL_DEBUG_FILE", "NVIDIA_VISIBLE_DEVICES"}
    | {"ASCEND_RT_VISIBLE_DEVICES", "NCCL_HOSTID", "HCCL_IF_IP"}
)
"""Variables that may differ from rank to rank without being worth a second look."""


def merged(environments: Sequence[Environment]) -> tuple[Environment, ...]:
    """Environments that say the same on the same host, as one with all their names."""
    found: dict[object, Environment] = {}
    for each in environments:
        same = tuple(
            (name, setting.value)
            for name, setting in sorted(each.settings.items())
            if name not in PER_RANK
        )
        unsure = (tuple(sorted(each.untold)), bool(each.unread), each.lost, each.lacks_rdma)
        key = (each.kind, each.host, each.version, same, each.ignored, each.shm_bytes, unsure)
        before = found.get(key)
        if before is None:
            found[key] = each
        else:
            who, torch = (*before.who, *each.who), before.torch or each.torch
            found[key] = replace(before, who=who, torch=torch)
    return tuple(found.values())
