"""More facts of a simulated host: marks, wire and switch of each NIC, settings of the host."""

from __future__ import annotations

from typing import Final

from commcheck.lazy import dataclass


@dataclass(frozen=True, slots=True)
class Wire:
    """How a NIC port marks its packets, what its link is made of, and who is at the other end."""

    forced_tclass: int | None = None  # by the driver; None: the jobs mark their packets
    ecn: frozenset[int] = frozenset(range(8))  # priorities with congestion control on
    cma_mode: str = "RoCE v2"
    fec: str = "RS"
    rx_dbm: tuple[float, ...] = (0.35, 0.42, 0.18, 0.30)  # light that each lane receives
    raw_ber: str = "2E-8"  # as the firmware's tools print it
    effective_ber: str = "15E-255"  # their zero
    recommendation: str = "No issue was observed"
    switch: str = "leaf-01"  # empty: nobody is heard
    switch_port: str = "Ethernet12"
    switch_pfc: frozenset[int] = frozenset({3})
    vlan: int = 100  # of the switch port
    path_mtu_bytes: int = 9216  # least of the switch ports on the way
    described_as: str = ""  # by the switch: "gpu-01:ens1np0"
    pkeys: tuple[int, ...] = (0xFFFF,)
    read_request_bytes: int = 4096


@dataclass(frozen=True, slots=True)
class System:
    """Settings of a host as a whole."""

    acs: bool = False  # the ports of the PCIe switches redirect
    lldpad: bool = False  # it runs
    iommu: str = "identity"  # how each group translates
    memlock: str = "unlimited"
    shares_subnet: bool = False  # all rails in one, without rules
    launch_ns: int = 4_000  # what the launch of a kernel takes its CPU


OVERLAPS: Final = (
    "--overlap-grad-reduce",
    "--overlap-param-gather",
    "--use-distributed-optimizer",
)
"""Flags that let Megatron communicate while it computes."""


@dataclass(frozen=True, slots=True)
class Job:
    """A training job of Megatron that runs on the host: one rank a GPU, on two hosts.

    ``variables``: set for all ranks on top of what any job has; an empty value unsets one.
    ``flags``: of its command line, that decide about communication.
    ``lost``: local ranks whose process is gone. ``stopped``: local ranks in state T. ``ras``: its
    RAS service answers. ``memlock``: what each rank may lock.
    """

    variables: tuple[tuple[str, str], ...] = ()
    flags: tuple[str, ...] = (*OVERLAPS, "--ddp-bucket-size", "40000000")
    lost: frozenset[int] = frozenset()
    stopped: frozenset[int] = frozenset()
    ras: bool = True
    memlock: str = "unlimited"


GOOD_JOB: Final = Job()
GOOD_WIRE: Final = Wire()
GOOD_SYSTEM: Final = System()
"""As they are on a healthy host."""
