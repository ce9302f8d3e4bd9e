"""What busbw may be at most, and what a healthy run of that kind shows, with the sum behind it.

Between hosts the NICs' line rates bound it, inside a host the accelerators' links do; there a
reference measured on healthy hosts is better than the wire, since NVLS counts above it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

from commcheck.jobs.reading import Sweep
from commcheck.lazy import dataclass, regex


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """What is declared of the hosts that ran.

    ``nic_gbits``: line rate of one NIC port, Gb/s. ``rails``: NICs that a host uses for training.
    ``gpus``: GPUs of a host that share them evenly; None: not known, and one NIC each is certain.
    ``ports``: how many ports a rail has at most: 1, or those of a bond, of which a connection uses
    one or all.
    ``reference_gbytes``: busbw in GB/s that this very run shows on hosts known to be good.
    ``algorithm``: NCCL_ALGO of the run, where it is known.
    """

    nic_gbits: float | None = None
    rails: int | None = None
    gpus: int | None = None
    ports: int = 1
    reference_gbytes: float | None = None
    algorithm: str = ""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a run is held against. ``gbytes``: busbw in GB/s; ``sum``: how it comes about.

    ``ceiling``: no run across the network can be faster, or None. ``hides``: by this factor the
    network could be slower than its bound and the run still reach it (a tree on few hosts); 1.0
    where the run proves the NICs. ``most``: the bound if the GPUs share all NICs, where it is not
    known whether they do; what lies between the two cannot be told apart from a slow network.
    """

    gbytes: float
    kind: Literal["network", "reference"]
    sum: str
    ceiling: float | None = None
    hides: float = 1.0
    most: float | None = None


# busbw of healthy single hosts at large sizes, GB/s, by GPU, test and number of GPUs. H100-class
# with fewer than five GPUs has no NVLS. Sources: NVIDIA nccl-tests results published by CoreWeave,
# AWS and ml-engineering; Azure NHC's limits.
_H100: Final = {4: 363.0, 5: 414.0, 6: 436.0, 7: 460.0, 8: 470.0}
_REFERENCES: Final[tuple[tuple[re.Pattern[str], Mapping[str, Mapping[int, float]]], ...]] = (
    (
        regex(r"\bH[12]00\b(?!.*(?:NVL|PCIe))"),
        {"all_reduce": _H100, "all_gather": {8: 361.0}, "reduce_scatter": {8: 363.0}},
    ),
    (
        regex(r"\bA100-SXM|\bA100.*SXM"),
        {"all_reduce": {8: 232.0}, "all_gather": {8: 232.0}, "reduce_scatter": {8: 232.0}},
    ),
    (regex(r"\bB200\b"), {"all_reduce": {8: 835.0}}),
    (regex(r"\bMI300X\b"), {"all_reduce": {8: 312.0}}),
)
WIRE_GBYTES: Final[tuple[tuple[re.Pattern[str], float], ...]] = (
    (regex(r"\bH[12]00\b(?!.*(?:NVL|PCIe))"), 450.0),
    (regex(r"\bA100\b.*SXM"), 300.0),
    (regex(r"\bB200\b"), 900.0),
)
"""One-way NVLink bandwidth of one GPU, GB/s, by its name. Source: NVIDIA data sheets."""


def nvls_reference(sweep: Sweep) -> bool:
    """True where the platform reference of this run counts on NVLS."""
    gpu = sweep.ranks[0].name if sweep.ranks else ""
    return (
        sweep.collective == "all_reduce"
        and (sweep.group_ranks or 0) >= 5
        and bool(re.search(r"\bH[12]00\b(?!.*(?:NVL|PCIe))|\bB200\b", gpu))
    )


def hosts_of(sweep: Sweep, asked_hosts: int | None = None) -> int | None:
    """How many hosts took part: the Rank lines say it, else whoever ran it."""
    return len(sweep.group_hosts) or asked_hosts


def expectation(sweep: Sweep, fabric: Fabric, hosts: int | None) -> tuple[Expectation | None, str]:
    """What the run is held against, or None and what is missing for it."""
    if sweep.collective is None:
        return None, "say which collective it is, --collective NAME: its output does not name it"
    if not sweep.nranks or not hosts:
        return (
            None,
            "say how many ranks ran on how many hosts, --ranks N --hosts N: its output does not "
            "name them",
        )
    if fabric.reference_gbytes is not None:
        text = f"{fabric.reference_gbytes:g} GB/s declared for this run"
        ceiling = None
        if hosts > 1 and fabric.nic_gbits and fabric.rails:
            ceiling = network(sweep, fabric, hosts).ceiling
        return Expectation(fabric.reference_gbytes, "reference", text, ceiling), ""
    if hosts > 1:
        if not fabric.nic_gbits or not fabric.rails:
            return None, _not_given(fabric)
        return network(sweep, fabric, hosts), ""
    return _inside(sweep)


def _not_given(fabric: Fabric) -> str:
    wanted = [
        *(() if fabric.nic_gbits else (("the line rate of a NIC", "--nic-gbps GBITS"),)),
        *(() if fabric.rails else (("the number of NICs of a host", "--rails N"),)),
    ]
    return f"give {' and '.join(what for what, _ in wanted)}: {' '.join(how for _, how in wanted)}"


def _inside(sweep: Sweep) -> tuple[Expectation | None, str]:
    gpu = sweep.ranks[0].name if sweep.ranks else ""
    for form, tests in _REFERENCES:
        value = tests.get(sweep.collective or "", {}).get(sweep.group_ranks or 0)
        if form.search(gpu) and value is not None:
            text = f"{value:g} GB/s is what {sweep.group_ranks} healthy {gpu} reach"
            return Expectation(value, "reference", text), ""
    what = f"{sweep.collective} on {sweep.group_ranks} {gpu or 'accelerators'} of one host"
    return None, f"no reference for {what}: give one measured on a good host, --reference GB/s"


def network(sweep: Sweep, fabric: Fabric, hosts: int) -> Expectation:
    """The bound that the NICs set for a run over several hosts; needs line rate and rails."""
    nic, rails, ranks = (fabric.nic_gbits or 0.0) / 8, fabric.rails or 0, sweep.group_ranks or 0
    per_host, at_once = max(ranks // hosts, 1), _at_once(sweep, hosts)
    sure = nics_of(rails, at_once, fabric.gpus) / at_once
    perhaps = fabric.ports * nics_of(rails, at_once, fabric.gpus or at_once) / at_once
    line = f"{fabric.nic_gbits:g} Gb/s / 8"
    if sweep.collective == "sendrecv":
        most = nic * min(sure, 1.0)
        text = f"one NIC of {line} = {most:g} GB/s"
        return Expectation(most, "network", text, most * fabric.ports)
    if sweep.collective in ("alltoall", "alltoallv") and ranks > per_host:
        crossing = (ranks - 1) / (ranks - per_host)
        most = sure * nic * crossing
        text = (
            f"{sure * nic:g} GB/s for each of {per_host} GPUs x (R-1)/(R-g) = {ranks - 1}/"
            f"{ranks - per_host}: {most:.4g} GB/s"
        )
        ceiling = nic * fabric.ports * rails / per_host * crossing
        return Expectation(most, "network", text, ceiling, most=_if_more(most, perhaps / sure))
    used = sure * per_host
    most = used * nic
    hides, ceiling = 1.0, rails * fabric.ports * nic
    text = f"{used:g} NIC{'' if used == 1 else 's'} x {line} = {most:g} GB/s"
    if sweep.collective == "all_reduce" and not _is_ring(fabric, sweep):
        # A tree sends less over the network than a ring: (R-1)/R over (N-1)/N.
        hides = (ranks - 1) / ranks / ((hosts - 1) / hosts)
        ceiling = ceiling * hides
    return Expectation(most, "network", text, ceiling, hides, _if_more(most, perhaps / sure))


def nics_of(rails: int, at_once: int, gpus: int | None) -> int:
    """NICs of a host that its ``at_once`` busy GPUs use, if ``gpus`` share all of them evenly.

    NCCL gives a GPU the NICs nearest to it, and a board has as many for each: 4 of 32 on 8 GPUs
    (AWS p5.48xlarge). One that is left over is for the host itself. None: one NIC each at least.
    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html
    """
    each = max(rails // gpus, 1) if gpus else 1
    return min(rails, at_once * each)


def _at_once(sweep: Sweep, hosts: int) -> int:
    """The ranks of a host that are busy at one time: all groups of a split run are."""
    ranks, among = (
        (len(sweep.ranks), len(sweep.hosts)) if sweep.split else (sweep.group_ranks or 0, hosts)
    )
    return max(ranks // max(among, 1), 1)


def _if_more(bound: float, times: float) -> float | None:
    return bound * times if times > 1 else None


def _is_ring(fabric: Fabric, sweep: Sweep) -> bool:
    algorithm = fabric.algorithm or sweep.env.get("NCCL_ALGO", "")
    return algorithm.lower() == "ring"
