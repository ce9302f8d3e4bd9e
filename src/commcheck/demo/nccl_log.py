"""What NCCL of the job's ranks logs on a simulated host: it follows from the job's hosts. Pure.

The lines of NCCL 2.28 at NCCL_DEBUG=INFO with the subsystems INIT, BOOTSTRAP, ENV, NET and GRAPH.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from commcheck.demo.job import HOSTS, comm_id, local_ranks, log_path, variables
from commcheck.demo.parts import File
from commcheck.demo.paths import has_gpudirect, has_rdma
from commcheck.demo.state import HostState, NicState
from commcheck.demo.tools.ip import addresses
from commcheck.lazy import dataclass
from commcheck.nccl.environment.names import params

_VERSION: Final = "2.28.9+cuda12.8"
_DRIVER: Final = 12080
_LINKS: Final = {"Ethernet": "RoCE", "InfiniBand": "IB"}
_CHANNELS_A_NIC: Final = 2


@dataclass(frozen=True, slots=True)
class World:
    """The ranks of one run: its hosts, how many it has in all, and its own id.

    ``first``: the place of the first one that is known. ``each``: ranks on a host.
    """

    hosts: tuple[HostState, ...]
    nodes: int
    first: int
    each: int
    comm: str
    forced: bool = False  # a variable takes RDMA away

    @property
    def tcp(self) -> bool:
        """One host that has no RDMA takes all others to sockets."""
        return self.forced or any(not _usable(host) for host in self.hosts)


def logs(host: HostState, fleet: Sequence[HostState]) -> Iterator[File]:
    """The file of every rank of the job that runs on the host."""
    if host.job is None or not host.gpus:
        return
    hosts = members(host, fleet)
    world = World(
        tuple(hosts),
        HOSTS,
        (hosts[0].number - 1) % HOSTS,
        len(host.gpus),
        comm_id(hosts[0]),
        any(_forces_tcp(variables(each, 0)) for each in hosts),
    )
    for local, pid in local_ranks(host):
        env = variables(host, local)
        if "NCCL_DEBUG_FILE" in env:
            # At WARN the file is opened, and stays empty while nothing is wrong.
            said = env.get("NCCL_DEBUG") == "INFO"
            yield File(log_path(host, pid), rank_log(world, host, local, pid, env) if said else "")


def members(host: HostState, fleet: Sequence[HostState]) -> list[HostState]:
    """The hosts of its job, as far as they are of the fleet and of its kind."""
    first = host.number - (host.number - 1) % HOSTS
    mine = range(first, first + HOSTS)
    return [each for each in fleet if each.number in mine and _kind(each) == _kind(host)]


def _kind(host: HostState) -> tuple[object, ...]:
    links = {nic.link_layer for nic in host.nics}
    return dict(host.declared).get("commcheck_peers"), len(host.gpus), frozenset(links)


def _usable(host: HostState) -> list[NicState]:
    """The NICs that NCCL takes: the port is up, and has an address that is routed."""
    return [nic for nic in host.nics if nic.present and nic.link_up and has_rdma(nic)]


def _forces_tcp(env: Mapping[str, str]) -> bool:
    return env.get("NCCL_IB_DISABLE") == "1" or env.get("NCCL_NET") == "Socket"


def rank_log(world: World, host: HostState, local: int, pid: int, env: Mapping[str, str]) -> str:
    """What one rank says, line by line."""
    head = f"{host.name}:{pid}:{pid + 60} [{local}] NCCL INFO "
    return "".join(f"{head}{line}\n" for line in _rank(world, host, local, env))


def _rank(world: World, host: HostState, local: int, env: Mapping[str, str]) -> Iterator[str]:
    total = world.nodes * world.each
    rank = (world.first + world.hosts.index(host)) * world.each + local
    pointer = f"comm 0x7f{rank:010x} rank {rank}"
    bus = int(host.gpus[local].pci.split(":")[1], 16) << 12
    who = (
        f"ncclCommInitRankConfig {pointer} nranks {total} cudaDev {local} nvmlDev {local} "
        f"busId {bus:x} commId {world.comm}"
    )
    yield from _network(world, host, env)
    yield f"{who} - Init START"
    yield (
        f"{pointer} nRanks {total} nNodes {world.nodes} localRanks {world.each} "
        f"localRank {local} MNNVL 0"
    )
    rings = _rings(world)
    for channel, ring in enumerate(rings):
        if rank == 0:
            listed = "".join(f"{each:4}" for each in ring)
            yield f"Channel {channel:02}/{len(rings):02} :{listed}"
        at = ring.index(rank)
        yield f"Ring {channel:02} : {ring[at - 1]} -> {rank} -> {ring[(at + 1) % total]}"
    count = len(rings)
    yield f"{count} coll channels, {count} collnet channels, 16 nvls channels, {count} p2p channels"
    yield f"{who} - Init COMPLETE"
    yield (
        f"Init timings - ncclCommInitRankConfig: rank {rank} nranks {total} total 1.42 (kernels "
        "0.21, alloc 0.03, bootstrap 0.38, allgathers 0.02, topo 0.24, graphs 0.01, "
        "connections 0.05, rest 0.48)"
    )
    for channel, ring in enumerate(rings):
        yield from _edges(world, host, channel, ring, rank)
    yield f"Connected all rings, use ring PXN 0 GDR {int(has_gpudirect(host) and not world.tcp)}"


def _network(world: World, host: HostState, env: Mapping[str, str]) -> Iterator[str]:
    """How it finds the others, and what carries the traffic."""
    nics = _usable(host)
    oob = next((f"{each[0]}:{each[1]}<0>" for each in addresses(host)), "")
    oob = oob or f"eth0:192.0.2.{host.number}<0>"
    yield f"Bootstrap: Using {oob}"
    yield f"cudaDriverVersion {_DRIVER}"
    yield f"NCCL version {_VERSION}"
    yield from _echoes(env)
    yield "NET/Plugin: Could not find: libnccl-net.so"
    if not nics and not world.forced:
        yield "NET/IB : No device found."
    elif not world.forced:
        kinds = [f"[{n}]{nic.hca}:1/{_LINKS[nic.link_layer]}" for n, nic in enumerate(nics)]
        yield f"NET/IB : Using {' '.join(kinds)} [RO]; OOB {oob}"
    if world.tcp:
        yield f"NET/Socket : Using [0]{oob}"
    yield f"Using network {'Socket' if world.tcp else 'IB'}"
    word = "Enabled" if has_gpudirect(host) else "Disabled"
    for n, nic in enumerate(() if world.tcp else nics):
        yield f"NET/IB : GPU Direct RDMA {word} for HCA {n} '{nic.hca}'"


def _echoes(env: Mapping[str, str]) -> Iterator[str]:
    """What NCCL says of the variables that it knows."""
    known = params()
    for name, value in sorted(env.items()):
        if name.startswith("NCCL_") and name in known and not name.startswith("NCCL_DEBUG"):
            dot = "." if known[name].is_integer else ""
            yield f"{name} set by environment to {value}{dot}"


def _rings(world: World) -> list[list[int]]:
    """A ring for each channel: it enters and leaves every host once, by the GPUs near one NIC."""
    size = world.each
    nics = 1 if world.tcp else min(len(_usable(host)) for host in world.hosts)
    near = max(size // max(len(world.hosts[0].nics), 1), 1)
    rings = []
    for channel in range(_CHANNELS_A_NIC * nics):
        first = channel % nics * near % size
        last = (first + 1) % size
        middle = [gpu for gpu in range(size) if gpu not in (first, last)]
        order = [first, *middle, last][:size]
        ring = [node * size + gpu for node in range(world.nodes) for gpu in order]
        start = ring.index(0)
        rings.append([*ring[start:], *ring[:start]])
    return rings


def _edges(
    world: World, host: HostState, channel: int, ring: Sequence[int], rank: int
) -> Iterator[str]:
    size = world.each
    at = ring.index(rank)
    before, after = ring[at - 1], ring[(at + 1) % len(ring)]
    direct = "/GDRDMA" if has_gpudirect(host) else ""
    net = "NET/Socket/0" if world.tcp else f"NET/IB/{channel % len(_usable(host))}{direct}"
    linked = any(link for gpu in host.gpus for link in gpu.links_gbytes)
    inside = "P2P/CUMEM" if linked else "SHM/direct/direct"
    head = f"Channel {channel:02}/0 : "
    if before // size != rank // size:
        yield f"{head}{before}[{before % size}] -> {rank}[{rank % size}] [receive] via {net}"
    step = f"{head}{rank}[{rank % size}] -> {after}[{after % size}]"
    if after // size != rank // size:
        yield f"{step} [send] via {net}"
    else:
        yield f"{step} via {inside}"
