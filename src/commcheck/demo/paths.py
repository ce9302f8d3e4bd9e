"""What follows from the facts of hosts for those who send over them: time, bandwidth, loss. Pure.

A message of S bytes takes ``alpha_s + S / beta_bytes_s`` on a path; a path that loses packets
holds that only until the buffers on the way are full. So a fault that changes a fact shows in a
sweep, in the counters and in a training step alike.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, Literal

from commcheck.demo.counts import Count, Counts, plus
from commcheck.demo.state import HostState, NicState, active_mtu_bytes
from commcheck.lazy import dataclass

_UNTAGGED: Final = 0
"""Priority of a packet without a tag where the port trusts tags alone."""


def roce_priority(nic: NicState) -> int:
    """The priority on which RoCE leaves and reaches the port."""
    if nic.qos.trust != "dscp":
        return _UNTAGGED
    return dict(nic.qos.dscp_prio or ()).get(nic.roce_dscp, nic.roce_dscp >> 3)


def is_lossless(nic: NicState) -> bool:
    """True where nothing is dropped because a buffer is full."""
    if nic.link_layer == "InfiniBand":
        return True  # credits
    return nic.ecn_only or roce_priority(nic) in nic.qos.pfc or (nic.pause_rx and nic.pause_tx)


# --- counters -----------------------------------------------------------------------------------

_LOST: Final = {
    "discards": Count(918_223, 900),
    "out_of_sequence": Count(918_223, 900),
    "sequence_errors": Count(440_118, 430),
    "implied_naks": Count(52),
    "duplicate_requests": Count(3_311, 3),
    "retransmissions": Count(88_120, 85),
    "retransmission_timeouts": Count(1_190, 1),
    "timeouts": Count(1_203, 2),
}
"""What loss adds, as the recordings of lossy ports have it."""


def counted(nic: NicState) -> Counts:
    """The port's counters with what follows from how it is set: loss, or no traffic."""
    counts = nic.counts
    if not nic.link_up:
        names = ("rdma_rx_bytes", "rdma_tx_bytes", "corrected_bits", "ib_wait")
        return replace(counts, **{name: replace(getattr(counts, name), per_s=0) for name in names})
    if is_lossless(nic):
        return counts
    return replace(
        counts, **{name: plus(getattr(counts, name), more) for name, more in _LOST.items()}
    )


# --- paths --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Path:
    """One way between two accelerators or hosts.

    ``loss``: of its packets, once its buffers are full. ``over``: what carries it.
    """

    alpha_s: float
    beta_bytes_s: float
    over: Literal["nvlink", "pcie", "rdma", "tcp"]
    loss: float = 0.0

    def seconds(self, size_bytes: float) -> float:
        """How long a message of this size takes."""
        quick = min(size_bytes, _BUFFERED_BYTES) if self.loss else size_bytes
        again = 1 + self.loss * _WINDOW_PACKETS
        return self.alpha_s + (quick + (size_bytes - quick) * again) / self.beta_bytes_s


_LOSS: Final = 0.05
"""Own choice: what a receiver without PFC drops when several senders meet at its leaf."""

_WINDOW_PACKETS: Final = 122
"""Sent again for each loss by go-back-N: 10 us of a 400G line, in packets of 4096 bytes."""

_BUFFERED_BYTES: Final = 16 << 20
"""What the shared buffer of a leaf takes before it drops: a part of its 64 to 128 MiB."""

RDMA_S: Final = 2.5e-6
TCP_S: Final = 10e-6
NVLINK_S: Final = 1.2e-6
"""Seconds of one step; two hosts of eight take 30 steps of a ring, one takes 14. They give the
latencies of public tables: about 75 us over RDMA, 300 us over TCP, 17 us inside a host."""

_TCP_BYTES_S: Final = 2.8e9
"""What a host's cores carry over sockets, whatever its NICs (NCCL NET/Socket, public tables)."""

_PRACTICE: Final = 0.97
"""Of the payload that fits on a wire, in practice: 47 of 50 GB/s (public nccl-tests results)."""

_PCIE_SHARE: Final = 0.859
"""Of the bits of a PCIe link, payload in practice: 440 of 512 Gb/s at 32 GT/s x16."""

_OVERHEAD_BYTES: Final = {"Ethernet": 82, "InfiniBand": 26}
"""Of each packet, RoCE v2 with preamble and gap, or LRH, BTH and both CRCs."""

_SLOW_WAY: Final = 0.25
"""Own choice: what is left where all flows of two hosts meet on one of four uplinks."""

_THROUGH_HOST_MEMORY: Final = 0.4
"""Of the bandwidth, where GPU memory is copied to the host's first (NCCL issues 1412, 2409)."""

_PCIE_PEERS: Final = 0.4
"""Of a GPU's PCIe link, in a ring that has no NVLink: both ways, and two GPUs to a switch."""


def _pcie_bytes_s(gts: float, width: int) -> float:
    coding = 0.8 if gts <= 5 else 128 / 130
    return gts * 1e9 / 8 * width * coding * _PCIE_SHARE * 130 / 128


def has_gpudirect(host: HostState) -> bool:
    """True where a NIC reaches GPU memory itself: by a module, or DMA-BUF of the open driver."""
    names = {module.name for module in host.modules}
    return bool(names & {"nvidia_peermem", "nv_peer_mem"}) or host.driver_open


def has_rdma(nic: NicState) -> bool:
    """True where the port has an address that RDMA can be routed to."""
    return nic.link_layer == "InfiniBand" or any(gid.roce_version == 2 for gid in nic.gids)


def end(host: HostState, nic: NicState) -> Path | None:
    """What one end of a rail allows; None where nothing passes."""
    if not nic.present or not nic.link_up:
        return None
    if not has_rdma(nic):
        return Path(TCP_S, _TCP_BYTES_S / max(len(host.nics), 1), "tcp")
    ethernet = nic.link_layer == "Ethernet"
    mtu = active_mtu_bytes(nic.mtu_bytes) if ethernet else 4096
    payload = mtu / (mtu + _OVERHEAD_BYTES[nic.link_layer])
    wire = nic.speed_mbits * 1e6 / 8 * payload * _PRACTICE
    slot = _pcie_bytes_s(nic.pcie_gts, nic.pcie_width)
    beta = min(wire, slot) * (1.0 if has_gpudirect(host) else _THROUGH_HOST_MEMORY)
    return Path(RDMA_S, beta, "rdma", 0.0 if is_lossless(nic) else _LOSS)


def between(one: HostState, other: HostState, rail: int) -> Path | None:
    """The path of a rail between two hosts: its worse end, or the fabric between them.

    None: an end is missing or down.
    """
    ends = [end(host, host.nics[rail]) for host in (one, other) if rail < len(host.nics)]
    if len(ends) < 2 or ends[0] is None or ends[1] is None:
        return None
    slower = min(ends[0], ends[1], key=lambda path: path.beta_bytes_s)
    crossed = other.number in one.slow_to or one.number in other.slow_to
    return Path(
        max(ends[0].alpha_s, ends[1].alpha_s),
        slower.beta_bytes_s * (_SLOW_WAY if crossed else 1.0),
        "tcp" if "tcp" in (ends[0].over, ends[1].over) else "rdma",
        max(ends[0].loss, ends[1].loss),
    )


def network(one: HostState, other: HostState) -> Path | None:
    """All rails together, as a collective uses them: its channels wait for the slowest rail.

    Channels of a rail that is missing share another's. None: no rail is left.
    """
    rails = max(len(one.nics), len(other.nics))
    found = [between(one, other, rail) for rail in range(rails)]
    left = [path for path in found if path is not None]
    if not left:
        return None
    slowest = min(left, key=lambda path: path.beta_bytes_s)
    sharing = math.ceil(rails / len(left))
    return Path(
        max(path.alpha_s for path in left),
        slowest.beta_bytes_s * rails / sharing,
        slowest.over,
        max(path.loss for path in left),
    )


def between_npus(one: HostState, other: HostState) -> Path | None:
    """The ports of all NPUs together, the slowest times their number. None: one is down."""
    ports = [npu for host in (one, other) for npu in host.npus]
    if not ports or any(not npu.link_up or npu.address is None for npu in ports):
        return None
    count = min(len(one.npus), len(other.npus))
    payload = min(npu.mtu_bytes / (npu.mtu_bytes + _OVERHEAD_BYTES["Ethernet"]) for npu in ports)
    wire = min(npu.speed_mbits for npu in ports) * 1e6 / 8 * payload * _PRACTICE
    lossless = all(_NPU_PRIORITY in npu.pfc for npu in ports)
    return Path(RDMA_S, wire * count, "rdma", 0.0 if lossless else _LOSS)


HCCS: Final = Path(NVLINK_S, 150e9, "nvlink")
"""Inside a host of eight 910B: a ring takes about three quarters of seven links of 28 GB/s."""

_NPU_PRIORITY: Final = 4
"""HCCL's default: traffic class 132, DSCP 33, priority 4."""


def inside(host: HostState, *, nvls: bool = False) -> Path | None:
    """The way around the GPUs of a host, a ring; ``nvls``: the switches reduce, where they can.

    None: a GPU cannot be talked to, and no collective starts.
    """
    if not host.gpus or any(gpu.lost for gpu in host.gpus):
        return None
    slowest = min(host.gpus, key=lambda gpu: sum(filter(None, gpu.links_gbytes)))
    links = sum(filter(None, slowest.links_gbytes)) * 1e9
    if not links:
        gpu = min(host.gpus, key=lambda each: (each.pcie_gen or 0) * (each.pcie_width or 0))
        gts = 2.0 ** (gpu.pcie_gen or 1) if (gpu.pcie_gen or 1) > 2 else 2.5 * (gpu.pcie_gen or 1)
        slot = _pcie_bytes_s(gts, gpu.pcie_width or 0)
        return Path(RDMA_S, slot * _PCIE_PEERS, "pcie")
    gain = slowest.nvls_gain if nvls and len(host.gpus) >= _NVLS_GPUS else 1.0
    return Path(NVLINK_S, links * slowest.ring_share * gain, "nvlink")


_NVLS_GPUS: Final = 5
"""NCCL uses NVLS from so many GPUs of a host on."""
