"""What a host tells of its jobs' environments and of itself, as a case to judge. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from commcheck.check import EveryRail, Key, Unread
from commcheck.formats.gid_table import GidTable
from commcheck.formats.hccn_port import Pfc
from commcheck.formats.nvidia_nvlink import NvlinkGpu
from commcheck.formats.pci_tree import PciTree
from commcheck.formats.qos import Qos
from commcheck.formats.roce_marking import RoceMarking
from commcheck.lazy import regex
from commcheck.model import Machine, Rail
from commcheck.nccl.environment.model import (
    CONF,
    Case,
    Environment,
    HostFacts,
    Layer,
    Port,
    effective,
    merged,
)
from commcheck.nccl.environment.names import Version, version_of
from commcheck.nccl.job_files import JobFiles
from commcheck.nccl.processes import ETC, Process, layer_of


def read_version(value: object) -> Version:
    """An inventory's ``2.21.5``."""
    found = version_of(str(value).strip())
    if found is None:
        raise ValueError(f"wanted a release like 2.21.5, not {value!r}")
    return found


def read_known(value: object) -> tuple[str, ...]:
    """Beginnings of variables: a list, or one text with commas."""
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(
        isinstance(each, str) and re.fullmatch(r"NCCL_\w+", each.strip()) for each in given
    ):
        raise ValueError(f"wanted beginnings of variables like NCCL_OURS_, not {value!r}")
    return tuple(each.strip() for each in given)


NCCL_VERSION: Final[Key[Version | None]] = Key(
    name="commcheck_nccl_version",
    read=read_version,
    meaning="release of NCCL in the jobs' images, for defaults and names by release",
)
NCCL_KNOWN: Final[Key[tuple[str, ...] | None]] = Key(
    name="commcheck_nccl_known",
    read=read_known,
    meaning="beginnings of NCCL_ variables that belong to the site's own plugins",
)


def environments(
    machine: Machine,
    processes: Sequence[Process],
    conf: Layer | Unread,
    version: Version | None,
) -> tuple[Environment, ...]:
    """The environment of every rank; where none runs, that of every job to come."""
    has_files = machine.platform != "ascend"  # HCCL reads none
    file = () if isinstance(conf, Unread) or not has_files else (conf,)
    unread = (ETC,) if isinstance(conf, Unread) and has_files else ()
    ranks = []
    for process in processes:
        settings, ignored = effective([layer_of(process), *file])
        named = process.get("NCCL_CONF_FILE")
        user = f"NCCL_CONF_FILE={named}" if named else "the user's ~/.nccl.conf"
        rank = process.rank
        ranks.append(
            Environment(
                who=(f"pid {process.pid}" if rank is None else f"rank {rank} (pid {process.pid})",),
                kind="process",
                host=machine.name,
                settings=settings,
                ignored=ignored,
                version=version,
                unread=(*unread, user) if has_files else (),
                job=process.job,
            )
        )
    if ranks:
        return merged(ranks)
    settings, ignored = effective(file)
    if not settings and not ignored:
        return ()
    told = Environment(
        who=(ETC,),
        kind=CONF,
        host=machine.name,
        settings=settings,
        ignored=ignored,
        version=version,
    )
    return (told,)


def ports(
    machine: Machine,
    qos: EveryRail[Qos],
    marking: EveryRail[RoceMarking],
    gids: EveryRail[GidTable],
) -> tuple[Port, ...]:
    """Every RDMA port of the host; what its rails tell of marks and addresses."""
    return tuple(
        _port(rail, qos.of(rail), marking.of(rail), gids.of(rail))
        for rail in (*machine.rails, *machine.other_ports)
        if rail.present
    )


def _port(
    rail: Rail,
    qos: Qos | None,
    marking: RoceMarking | None,
    gids: GidTable | None,
) -> Port:
    return Port(
        hca=rail.hca,
        number=rail.port,
        link=rail.link_layer,
        active=None if rail.state is None else rail.state == "ACTIVE",
        qos=qos,
        tclass=marking.traffic_class if marking else None,
        tclass_known=marking is not None,
        is_vf=rail.is_vf,
        gids=gids.gids if gids else None,
    )


def around(
    machine: Machine, facts: HostFacts, files: JobFiles | Unread, tree: PciTree | Unread
) -> HostFacts:
    """The facts with what the ranks see around them."""
    if not isinstance(tree, Unread):
        devices = [gpu.pci for gpu in machine.accelerators]
        devices += [rail.pci for rail in machine.rails if rail.present]
        near = [tree.hangs_on_root(address) for address in devices if address]
        flat = None if None in near or len(near) < _LEAST_TO_PAIR else all(near)
        facts = replace(facts, pci=tree, flat=flat)
    facts = replace(facts, virtual=machine.in_vm)
    if isinstance(files, Unread):
        return facts
    locked = [rank.locked_bytes for rank in files.ranks if rank.locked_bytes is not None]
    limits = [each for each in locked if each >= 0]
    return replace(
        facts,
        files=files.files,
        virtual_topology=any(rank.virtual_topology for rank in files.ranks),
        locked_bytes=min(limits) if limits else -1 if locked else None,
        shm_bytes=min(
            (rank.shm_bytes for rank in files.ranks if rank.shm_bytes is not None), default=None
        ),
    )


_LEAST_TO_PAIR: Final = 3
"""One GPU and one NIC can be paired in one way only."""

_OLD: Final = regex(r"\b(?:[KPVT]\d|A100|A800|A30|A40|A10|A16|A2|L4|L40|L40S|RTX|GTX)")
"""GPUs before Hopper: their NVSwitches do not reduce."""


def nvlink(gpus: Sequence[NvlinkGpu] | Unread) -> tuple[bool | None, bool | None]:
    """Whether the GPUs have NVLink, and whether their NVSwitches reduce."""
    if isinstance(gpus, Unread) or not gpus:
        return None, None
    has = any(gpu.active for gpu in gpus)
    is_new = all(_OLD.search(gpu.name) is None for gpu in gpus)
    return has, has and is_new


def lossless_on_npus(pfc: Pfc | Unread) -> frozenset[int] | None:
    """Priorities with PFC on, on every port of every NPU that told; None: none did."""
    told = () if isinstance(pfc, Unread) else pfc.values
    ports = [slave.priorities for _, slaves in told for slave in slaves]
    return frozenset.intersection(*ports) if ports else None


def case(environments: Sequence[Environment], facts: HostFacts) -> Case:
    """The host's case."""
    return Case(tuple(environments), {facts.name: facts})
