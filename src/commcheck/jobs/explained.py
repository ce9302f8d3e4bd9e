"""Causes found by looking that may be why a run is slow: then the run is their consequence.

Each names the cause of another check by its slug. Those that work by losing packets count only
where the loss counters do not speak against it.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Explained

_LOSS: Final = (
    "pfc-off",
    "pfc-wrong-priority",
    "trust-not-dscp",
    "dscp-map-wrong",
    "switch-pfc-off",
    "roce-packets-lost",
    "roce-timeouts",
    "roce-corruption",
    "module-fault",
    "module-rx-power-low",
    "fec-off",
    "ber-uncorrected",
    "nic-symbol-errors",
    "nic-link-flaps",
    "rx-discards",
)
_SLOW_RAIL: Final = (
    "pcie-lanes-lost",
    "pcie-speed-low",
    "nic-speed-low",
    "rdma-rate-low",
    "roce-rate-limited",
    "mtu-too-small",
    "rdma-mtu-small",
    "hca-missing",
    "link-down",
    "link-no-cable",
    "gid-v1-only",
)

WIRE: Final = (
    *(Explained(slug, by_loss=True) for slug in _LOSS),
    *(Explained(slug) for slug in _SLOW_RAIL),
)
"""Of what crosses the network without GPUs."""

INSIDE: Final = tuple(
    Explained(slug)
    for slug in (
        "nvlink-lost",
        "nvlink-none",
        "nvlink-slow",
        "gpu-lost",
        "gpu-missing",
        "gpu-pcie-lanes-lost",
        "gpu-pcie-generation-low",
        "fabric-manager-stopped",
        "fabric-manager-not-running",
    )
)
"""Of what stays inside a host."""

NETWORK: Final = (*WIRE, Explained("gpudirect-unavailable"), *INSIDE)
"""Of a collective between hosts: it uses both."""

FLEET: Final = tuple(Explained(edge.cause, "any-in-job", edge.by_loss) for edge in NETWORK)
"""Of a run of all hosts: the slowest one sets the pace."""
