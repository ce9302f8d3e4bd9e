"""What follows from facts: time and bandwidth of paths, and what ports count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from commcheck.demo import paths
from commcheck.demo.counts import Count
from commcheck.demo.fault import known_faults
from commcheck.demo.persona import cast
from commcheck.demo.state import HostState, healthy
from commcheck.jobs.bound import WIRE_GBYTES

ONE, OTHER = healthy(1), healthy(2)
GB, MIB = 1e9, 1 << 20
FAULTS = known_faults()


def broken(name: str) -> HostState:
    return FAULTS[name].change(OTHER)


def network(other: HostState) -> paths.Path:
    found = paths.network(ONE, other)
    assert found is not None
    return found


def test_a_healthy_rail_carries_what_public_results_show() -> None:
    rail = paths.between(ONE, OTHER, 0)
    assert rail is not None
    assert 46 * GB < rail.beta_bytes_s < 48 * GB  # of 50
    assert (rail.over, rail.loss) == ("rdma", 0.0)
    assert network(OTHER).beta_bytes_s == pytest.approx(4 * rail.beta_bytes_s)


@pytest.mark.parametrize(
    ("fault", "low", "high"),
    [
        ("speed-100g", 0.20, 0.26),  # the slowest rail sets the pace of all
        ("pcie-x8", 0.45, 0.60),
        ("mtu-1500", 0.90, 0.97),
        ("no-gpudirect", 0.30, 0.60),
        ("gid-v1-only", 0.01, 0.05),
        ("nic-lost", 0.45, 0.55),  # two channels share a NIC
        ("link-down", 0.45, 0.55),
        ("pfc-off", 1.0, 1.0),
        ("nvlink-down", 1.0, 1.0),
    ],
)
def test_a_fault_costs_the_share_that_its_signature_has(
    fault: str, low: float, high: float
) -> None:
    share = network(broken(fault)).beta_bytes_s / network(OTHER).beta_bytes_s
    assert low <= share <= high


@pytest.mark.parametrize("fault", ["pfc-off", "trust-pcp"])
def test_loss_makes_large_messages_slow_and_leaves_small_ones(fault: str) -> None:
    lossy, good = network(broken(fault)), network(OTHER)
    assert lossy.loss > 0
    for size, least, most in ((MIB, 1.0, 1.0), (16 * MIB, 1.0, 1.0), (8192 * MIB, 0.1, 0.3)):
        assert least <= good.seconds(size) / lossy.seconds(size) <= most


def test_tcp_has_its_latency_and_no_more_than_the_cores_carry() -> None:
    tcp = network(broken("gid-v1-only"))
    assert tcp.over == "tcp"
    assert tcp.alpha_s > 3 * network(OTHER).alpha_s
    assert tcp.beta_bytes_s == pytest.approx(2.8 * GB)


def test_nothing_passes_where_no_rail_is_left() -> None:
    dark = OTHER.every_nic(lambda nic: replace(nic, link_up=False))
    assert paths.network(ONE, dark) is None
    assert paths.between(ONE, OTHER, 7) is None


@pytest.mark.parametrize(
    ("persona", "ring", "nvls"),
    [
        ("h100-roce", 367, 480),
        ("h200-ib", 367, 480),
        ("a100-roce", 234, 234),
        ("b200-roce", 682, 835),
    ],
)
def test_inside_a_host_it_is_what_public_results_show(
    persona: str, ring: float, nvls: float
) -> None:
    (host,) = cast(1, [persona])
    for switches_reduce, gbytes in ((False, ring), (True, nvls)):
        found = paths.inside(host, nvls=switches_reduce)
        assert found is not None
        assert found.beta_bytes_s / GB == pytest.approx(gbytes, rel=0.02)


def test_the_wire_is_that_of_the_data_sheets() -> None:
    for persona in ("h100-roce", "a100-roce", "b200-roce"):
        (host,) = cast(1, [persona])
        gpu = host.gpus[0]
        wire = next(value for form, value in WIRE_GBYTES if form.search(gpu.name))
        assert sum(filter(None, gpu.links_gbytes)) == pytest.approx(wire, rel=0.07)


def test_without_nvlink_or_without_a_gpu() -> None:
    unlinked = replace(ONE, gpus=tuple(replace(gpu, links_gbytes=(None,) * 18) for gpu in ONE.gpus))
    slow = paths.inside(unlinked)
    assert slow is not None
    assert slow.over == "pcie"
    assert slow.beta_bytes_s < 0.1 * 367 * GB
    assert paths.inside(broken("gpu-lost")) is None
    worse = paths.inside(broken("nvlink-down"))
    assert worse is not None
    assert 0.8 < worse.beta_bytes_s / (367 * GB) < 0.95


# --- counters -----------------------------------------------------------------------------------


def grown(host: HostState, rail: int = 0) -> set[str]:
    """What a port adds in a second."""
    counts = paths.counted(host.nics[rail])
    return {name for name, value in counts.at(1).items() if value > counts.at(0)[name]}


LOSS = {"discards", "out_of_sequence", "sequence_errors", "timeouts"}


@pytest.mark.parametrize(
    "change", [FAULTS[name].change for name in ("pfc-off", "trust-pcp", "traffic-class")]
)
def test_loss_follows_from_where_the_packets_go(change: Callable[[HostState], HostState]) -> None:
    assert grown(change(OTHER)) >= LOSS


def test_a_healthy_port_moves_bytes_and_loses_none() -> None:
    for host in cast(6, ["h100-roce", "h200-ib", "a100-roce", "b200-roce", "h100-thor"]):
        assert {"rdma_rx_bytes", "rdma_tx_bytes"} <= grown(host)
        assert not grown(host) & LOSS


def test_global_pause_is_lossless_too() -> None:
    paused = broken("pfc-off").every_nic(lambda nic: replace(nic, pause_rx=True, pause_tx=True))
    assert not grown(paused) & LOSS


def test_a_dead_link_counts_nothing() -> None:
    assert not grown(broken("link-down"), rail=1)


def test_a_counter_at_a_time() -> None:
    assert [Count(5, 2).at(second) for second in (0, 1, 10)] == [5, 7, 25]
