"""What launchers and benchmarks on a simulated host print: it follows from all hosts' facts. Pure.

Fake ``mpirun``, ``srun``, ``all_reduce_perf`` and its kin, ``hccl_test`` and ``ib_write_bw``: the
paths between the hosts that take part (``paths``) give the table (``jobs.simulate``).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from commcheck.demo.nccl_log import World, rank_log
from commcheck.demo.paths import (
    HCCS,
    RDMA_S,
    Path,
    between,
    between_npus,
    has_gpudirect,
    inside,
    network,
)
from commcheck.demo.pings import npu_ping, ping
from commcheck.demo.state import HostState, active_mtu_bytes
from commcheck.demo.training import printed
from commcheck.jobs.reading import COLLECTIVES, GIB, Rank
from commcheck.jobs.simulate import (
    IN_PIECES,
    Link,
    print_hccl_test,
    print_nccl_tests,
    print_write_bw,
    rate_of,
    simulate,
)
from commcheck.lazy import dataclass

TOOLS: Final = (
    "mpirun",
    "srun",
    "ib_write_bw",
    "ping",
    "train_step",
    *(f"{name}_perf" for name in COLLECTIVES),
    *(f"{name}_test" for name in COLLECTIVES),
)
"""Programs that ask the fleet, since no host alone can answer for them."""

RUN_S: Final = 10
"""Seconds that a run takes on the clocks of the hosts, for what they count meanwhile."""

_VERSIONS: Final = {
    "mpirun": "mpirun (Open MPI) 4.1.5\n\nReport bugs to http://www.open-mpi.org/community/help/\n",
    "srun": "slurm 23.11.4\n",
}
_NCCL: Final = "NCCL version 2.21.5+cuda12.4"
_MANAGEMENT: Final = Path(10e-6, 2.8e9, "tcp")
"""What is left where no rail is: sockets over the management network."""

_PID: Final = 41000


@dataclass(frozen=True, slots=True)
class Said:
    """What a program printed, how it ended, and the hosts whose NICs it used meanwhile."""

    text: str
    rc: int = 0
    used: tuple[str, ...] = ()


def answer(
    fleet: Mapping[str, HostState],
    host: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    met: Sequence[str] = (),
) -> Said:
    """What ``argv`` says on ``host``. ``met``: the hosts that train together, in their order."""
    tool = argv[0]
    if "--version" in argv and tool in _VERSIONS:
        return Said(_VERSIONS[tool])
    if tool == "ib_write_bw":
        return _write(fleet, host, argv)
    if tool == "ping":
        return Said(*ping(fleet[host], fleet.values(), argv[1:]))
    if tool == "hccn_tool":
        return Said(*npu_ping(fleet[host], fleet.values(), argv[1:]))
    if tool == "train_step":
        return Said(printed([fleet[each] for each in met], met.index(host), json.loads(argv[1])))
    hosts, each = [host], _number(argv, "-g") or _number(argv, "-p") or 1
    if tool == "mpirun":
        places = [place.rpartition(":") for place in _value(argv, "-H").split(",")]
        hosts, each = [name for name, _, _ in places], int(places[0][2] or 1)
        given = [word.partition("=") for at, word in enumerate(argv) if argv[at - 1] == "-x"]
        env = {**env, **{name: value for name, _, value in given}}
    elif tool == "srun":
        hosts = _value(argv, "-w").split(",")
        words = [word for word in argv if word.startswith("--ntasks-per-node=")]
        each = int(words[0].partition("=")[2])
    unknown = [name for name in hosts if name not in fleet or fleet[name].reach == "down"]
    if unknown:
        return Said(f"ssh: Could not resolve hostname {unknown[0]}: Name or service not known\n", 1)
    states = [fleet[name] for name in hosts]
    at = next((at for at, word in enumerate(argv) if word.rpartition("/")[2] in TOOLS[2:]), None)
    if at is None:
        return Said(f"{tool}: nothing to start\n", 213)
    return _collective(states, each, argv[at].rpartition("/")[2], argv[at + 1 :], env)


def _value(argv: Sequence[str], option: str) -> str:
    return next((argv[at + 1] for at, word in enumerate(argv[:-1]) if word == option), "")


def _number(argv: Sequence[str], option: str) -> int:
    value = _value(argv, option)
    return int(value) if value.isdigit() else 0


_UNITS: Final = {"K": 10, "M": 20, "G": 30}


def _bytes(text: str) -> int:
    return int(text[:-1]) << _UNITS[text[-1]] if text[-1:] in _UNITS else int(text or 0)


# --- collectives --------------------------------------------------------------------------------


def _collective(
    states: Sequence[HostState],
    each: int,
    program: str,
    words: Sequence[str],
    env: Mapping[str, str],
) -> Said:
    collective, _, kind = program.rpartition("_")
    if kind == "test":
        return _of_npus(states, each, collective, words)
    lost = next((s for s in states if each > len(s.gpus) or any(g.lost for g in s.gpus)), None)
    if lost is not None:
        return Said(f"{lost.name}: Test CUDA failure common.cu:1005 'unknown error'\n", 3)
    ranks = [
        Rank(number, state.name, gpu, state.gpus[gpu].name, 0, _PID + gpu, state.gpus[gpu].pci)
        for number, (state, gpu) in enumerate(itertools.product(states, range(each)))
    ]
    split = env.get("NCCL_TESTS_SPLIT", "").partition("MOD ")[2]
    groups = int(split) if split.isdigit() else 1
    mine = ranks[:: groups or 1]
    path = _path(states, _rail(states[0], env), groups)
    steps = (2 if collective == "all_reduce" else 1) * (len(mine) - 1)
    link = Link(
        alpha_us=max(steps, 1) * path.alpha_s * 1e6,
        beta_gbytes=path.beta_bytes_s / 1e9,
        loss=_loss(path),
    )
    sizes = [_trimmed(size, collective, len(mine)) for size in _sizes(words)]
    run = simulate(collective, mine, sizes, link, version="" if groups > 1 else "2.17.6")
    if groups > 1:
        all_ranks = tuple(replace(rank, group=rank.rank % groups) for rank in ranks)
        run = replace(run, ranks=all_ranks, nranks=len(ranks))
    used = tuple(state.name for state in states) if len(states) > 1 else ()
    if "GRAPH" in env.get("NCCL_DEBUG_SUBSYS", ""):
        said = _all_lines(states, each)
    else:
        said = _lines(states, path, env)
    return Said(print_nccl_tests(run, library=said), 0, used)


def _of_npus(states: Sequence[HostState], each: int, collective: str, words: Sequence[str]) -> Said:
    """hccl_test: NPUs of a host are linked, and each has a port of its own."""
    ways = [between_npus(*pair) for pair in itertools.pairwise(states)] or [HCCS]
    there = [way for way in ways if way is not None]
    short = any(each > sum(npu.present for npu in state.npus) for state in states)
    if short or len(there) < len(ways):
        code = 1 if short else 12  # a parameter, or no connection over RoCE
        where = "./common/src/hccl_test_common.cc:538"
        text = f"hccl interface return err {where}, retcode: {code}\n"
        return Said(f"{text}This is an error in init_hcclComm.\n", code)
    ranks = [
        Rank(number, state.name, npu, state.npus[npu].name, 0, _PID + npu, state.npus[npu].pci)
        for number, (state, npu) in enumerate(itertools.product(states, range(each)))
    ]
    path = min(there, key=lambda way: GIB / way.seconds(GIB))
    steps = (2 if collective == "all_reduce" else 1) * (len(ranks) - 1)
    alpha_us = max(steps, 1) * path.alpha_s * 1e6
    link = Link(alpha_us=alpha_us, beta_gbytes=path.beta_bytes_s / 1e9, loss=_loss(path))
    sizes = [_trimmed(size, collective, len(ranks)) for size in _sizes(words)]
    return Said(print_hccl_test(simulate(collective, ranks, sizes, link)))


def _sizes(words: Sequence[str]) -> Sequence[int]:
    first, last = _bytes(_value(words, "-b")), _bytes(_value(words, "-e"))
    sizes = [max(first, 1)]
    while sizes[-1] * 2 <= last:
        sizes.append(sizes[-1] * 2)
    return sizes


def _trimmed(size: int, collective: str, ranks: int) -> int:
    """Pieces are alike, of 16 bytes or a multiple. Source: nccl-tests src/all_gather.cu."""
    whole = 16 * ranks if collective in IN_PIECES else 1
    return max(size // whole, 1) * whole


def _rail(state: HostState, env: Mapping[str, str]) -> int | None:
    """The one rail that NCCL_IB_HCA names, by its place; None: all of them."""
    name = env.get("NCCL_IB_HCA", "").lstrip("=").partition(":")[0]
    return next((at for at, nic in enumerate(state.nics) if nic.hca == name), None)


def _path(states: Sequence[HostState], rail: int | None, groups: int) -> Path:
    """The slowest part of the ring over the hosts and inside them."""
    insides = [inside(state, nvls=len(states) == 1) for state in states]
    ways = [way for way in insides if way is not None] or [_MANAGEMENT]
    if len(states) == 1:
        return ways[0]
    crossings = []
    for one, other in zip(states, [*states[1:], states[0]], strict=True):
        if rail is not None:
            way = between(one, other, rail)
        elif groups > 1:
            way = _one_group(one, other, groups)
        else:
            way = network(one, other)
        crossings.append(way or _MANAGEMENT)
    worst = min(crossings, key=lambda way: GIB / way.seconds(GIB))
    slow = min(way.beta_bytes_s for way in ways)
    return replace(worst, beta_bytes_s=min(worst.beta_bytes_s, slow), alpha_s=RDMA_S
                   if worst.over == "rdma" else worst.alpha_s)  # fmt: skip


def _one_group(one: HostState, other: HostState, groups: int) -> Path | None:
    """The slowest of the groups, each on its rail; GPUs that share a NIC share its bandwidth."""
    rails = max(len(one.nics), 1)
    ways = [between(one, other, rail) for rail in range(rails)]
    if any(way is None for way in ways):
        return None
    worst = min((way for way in ways if way is not None), key=lambda way: GIB / way.seconds(GIB))
    return replace(worst, beta_bytes_s=worst.beta_bytes_s * min(1.0, rails / groups))


def _loss(path: Path) -> float:
    """The share that each doubling of the size loses, so that 4 of them make it the path's."""
    slower = path.seconds(8 * GIB) * path.beta_bytes_s / (8 * GIB)
    return 1 - float(slower**-0.25) if path.loss else 0.0


def _lines(states: Sequence[HostState], path: Path, env: Mapping[str, str]) -> str:
    """NCCL's own lines, where they are asked for."""
    lines = [_NCCL]
    if env.get("NCCL_DEBUG") != "INFO" or len(states) == 1:
        return "\n".join(lines)
    rail = _rail(states[0], env)
    for state in states:
        who = f"{state.name}:{_PID}:{_PID + 100} [0] NCCL INFO"
        nics = [nic for at, nic in enumerate(state.nics) if nic.present and rail in (None, at)]
        if path.over == "tcp":
            lines.append(f"{who} Using network Socket")
            continue
        kind = {"Ethernet": "RoCE", "InfiniBand": "IB"}
        listed = " ".join(
            f"[{at}]{nic.hca}:1/{kind[nic.link_layer]}" for at, nic in enumerate(nics)
        )
        lines.append(f"{who} NET/IB : Using {listed} [RO]; OOB eth0:192.0.2.{state.number}<0>")
        lines.append(f"{who} Using network IB")
        direct = "/GDRDMA" if has_gpudirect(state) else ""
        lines.append(f"{who} Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/0{direct}")
    return "\n".join(lines)


def _all_lines(states: Sequence[HostState], each: int) -> str:
    """Everything that every rank says, as it is asked for when NCCL's start is looked at."""
    world = World(tuple(states), len(states), 0, each, "0x7a11")
    env = {"NCCL_DEBUG": "INFO"}
    texts = [
        rank_log(world, state, local, _PID + local, env)
        for state in states
        for local in range(each)
    ]
    return "".join(texts).rstrip("\n")


# --- perftest -----------------------------------------------------------------------------------


def _write(fleet: Mapping[str, HostState], host: str, argv: Sequence[str]) -> Said:
    device, size = _value(argv, "-d"), _number(argv, "-s")
    nics = fleet[host].nics
    rail = next((at for at, nic in enumerate(nics) if nic.hca == device and nic.present), None)
    if rail is None:
        return Said(
            f"IB device {device} not found\n Unable to find the Infiniband/RoCE device\n", 1
        )
    server = argv[-1]
    if server not in fleet:
        return Said("")  # it listens; the one who writes prints the table
    # What is written lies in the hosts' memory: no GPU on the way.
    ends = [replace(fleet[name], driver_open=True) for name in (host, server)]
    path = between(ends[0], ends[1], rail)
    if path is None or path.over == "tcp":
        return Said(
            " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\n", 1
        )
    gbits = 8 * GIB / path.seconds(8 * GIB) * 8 / 1e9
    nic = nics[rail]
    mtu = active_mtu_bytes(nic.mtu_bytes) if nic.link_layer == "Ethernet" else 4096
    kind = "Ethernet" if nic.link_layer == "Ethernet" else "IB"
    rates = [rate_of(size, gbits, _number(argv, "-n"))]
    text = print_write_bw(rates, device=device, mtu=mtu, link_type=kind)
    return Said(text, 0, (host, server))
