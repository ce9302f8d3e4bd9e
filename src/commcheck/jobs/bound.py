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
    ``reference_gbytes``: busbw in GB/s that this very run shows on hosts known to be good.
    ``algorithm``: NCCL_ALGO of the run, where it is known.
    """

    nic_gbits: float | None = None
    rails: int | None = None
    reference_gbytes: float | None = None
    algorithm: str = ""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a run is held against. ``gbytes``: busbw in GB/s; ``sum``: how it comes about.

    ``ceiling``: no run across the network can be faster, or None. ``hides``: by this factor the
    network could be slower than its bound and the run still reach it (a tree on few hosts); 1.0
    where the run proves the NICs.
    """

    gbytes: float
    kind: Literal["network", "reference"]
    sum: str
    ceiling: float | None = None
    hides: float = 1.0


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
        return None, "say which collective it is: its output does not name it"
    if not sweep.nranks or not hosts:
        return None, "say how many ranks ran on how many hosts: its output does not name them"
    if fabric.reference_gbytes is not None:
        text = f"{fabric.reference_gbytes:g} GB/s declared for this run"
        ceiling = None
        if hosts > 1 and fabric.nic_gbits and fabric.rails:
            ceiling = network(sweep, fabric, hosts).ceiling
        return Expectation(fabric.reference_gbytes, "reference", text, ceiling), ""
    if hosts > 1:
        if not fabric.nic_gbits or not fabric.rails:
            return None, "give the NICs' line rate and number: --nic-gbps 400 --rails 8"
        return network(sweep, fabric, hosts), ""
    return _inside(sweep)


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
    per_host = max(ranks // hosts, 1)
    line = f"{fabric.nic_gbits:g} Gb/s / 8"
    if sweep.collective == "sendrecv":
        return Expectation(nic, "network", f"one NIC of {line} = {nic:g} GB/s", nic)
    if sweep.collective in ("alltoall", "alltoallv") and ranks > per_host:
        share = nic * min(rails / per_host, 1.0)
        most = share * (ranks - 1) / (ranks - per_host)
        text = (
            f"{share:g} GB/s for each of {per_host} GPUs x (R-1)/(R-g) = {ranks - 1}/"
            f"{ranks - per_host}: {most:.4g} GB/s"
        )
        return Expectation(
            most, "network", text, nic * rails / per_host * (ranks - 1) / (ranks - per_host)
        )
    used = min(rails, per_host)
    most = used * nic
    hides, ceiling = 1.0, rails * nic
    text = f"{used} NICs x {line} = {most:g} GB/s"
    if sweep.collective == "all_reduce" and not _is_ring(fabric, sweep):
        # A tree sends less over the network than a ring: (R-1)/R over (N-1)/N.
        hides = (ranks - 1) / ranks / ((hosts - 1) / hosts)
        ceiling = ceiling * hides
    return Expectation(most, "network", text, ceiling, hides)


def _is_ring(fabric: Fabric, sweep: Sweep) -> bool:
    algorithm = fabric.algorithm or sweep.env.get("NCCL_ALGO", "")
    return algorithm.lower() == "ring"
