"""Printed runs equal recordings byte for byte, and simulated links are judged as what they are."""

from __future__ import annotations

import pytest

from commcheck.jobs import nccl_tests, perftest, rdma, sweep
from commcheck.jobs.bound import Fabric
from commcheck.jobs.offline import Told, read_runs
from commcheck.jobs.reading import Rank, Sweep
from commcheck.jobs.simulate import (
    Link,
    print_hccl_test,
    print_nccl_tests,
    print_write_bw,
    rate_of,
    simulate,
)
from tests.jobs.recordings import GPU, SWEEPS, text_of

FABRIC = Fabric(nic_gbits=400, rails=8, algorithm="Ring")
RANKS = tuple(
    Rank(at, f"gpu-0{at // 8}", at % 8, "NVIDIA H100 80GB HBM3", 0, 41000 + at, f"0000:{at:02x}:00")
    for at in range(16)
)
SIZES = tuple(1 << power for power in range(10, 34))

OLDER = (
    "02_allreduce_2node_16xh100_400g_ring_good.txt",
    "04_allgather_2node_16xh100_400g_good.txt",
    "05_allreduce_2node_tcp_fallback.txt",
    "06_allreduce_2node_pfc_broken.txt",
    "13_allreduce_1node_unchecked.txt",
    "14_alltoall_2node_good.txt",
    "15_sendrecv_one_rail_good.txt",
    "18_allreduce_1node_nvlink_down.txt",
)
NEWER = ("10_allreduce_2node_v1.stdout.txt",)


@pytest.mark.parametrize("name", OLDER)
def test_a_recording_printed_again_is_the_recording(name: str) -> None:
    text = text_of(name)
    (run,) = nccl_tests.parse(text)
    library = f"{run.log[0]}" if run.log else ""
    assert print_nccl_tests(run, library=library) == text


@pytest.mark.parametrize("name", NEWER)
def test_the_newer_layout_too(name: str) -> None:
    text = text_of(name)
    (run,) = nccl_tests.parse(text)
    printed = print_nccl_tests(run).splitlines()
    recorded = [line for line in text.splitlines() if "Writing JSON" not in line]
    # The tool adds the versions of header and library to its own.
    assert recorded[0].startswith(printed[0])
    assert [line.rstrip() for line in printed[1:]] == [line.rstrip() for line in recorded[1:]]


@pytest.mark.parametrize(
    "name", [name for name in SWEEPS if name.startswith(("30", "31", "32", "33", "35"))]
)
def test_hccl_recordings_too(name: str) -> None:
    (run,) = read_runs(text_of(name), SWEEPS[name].told)
    assert isinstance(run, Sweep)
    notes = [line for line in text_of(name).splitlines() if not line.startswith("Warning")]
    printed = print_hccl_test(run).splitlines()
    assert [line.split("|")[::3] for line in printed] == [line.split("|")[::3] for line in notes]
    assert printed[:2] == notes[:2]
    # The tool divides by its unrounded time: the last decimals of its bandwidth differ.
    (again,) = read_runs("\n".join(printed), SWEEPS[name].told)
    assert isinstance(again, Sweep)
    assert (again.rows, again.state) == (run.rows, run.state)


@pytest.mark.parametrize(
    "name", ["50_ib_write_bw_400g_good_gbits.txt", "52_ib_write_bw_pcie_limited.txt"]
)
def test_perftest_recordings_too(name: str) -> None:
    run = perftest.parse(text_of(name))
    printed = print_write_bw(
        run.rates, device=run.device, mtu=run.mtu or 0, link_type=run.link_type
    )
    assert printed == text_of(name)


@pytest.mark.parametrize("version", ["", "2.17.9"])
@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "alltoall", "reduce_scatter"])
def test_what_is_simulated_can_be_read(version: str, collective: str) -> None:
    made = simulate(collective, RANKS, SIZES, Link(alpha_us=60, beta_gbytes=380), version=version)
    (run,) = nccl_tests.parse(print_nccl_tests(made))
    assert (run.collective, run.nranks, run.problems) == (collective, 16, ())
    assert len(run.rows) == len(SIZES)


@pytest.mark.parametrize(
    ("link", "wrong", "cause"),
    [
        (Link(alpha_us=60, beta_gbytes=380), 0, ""),
        (Link(alpha_us=300, beta_gbytes=2.8), 0, "collective-tcp-fallback"),
        (Link(alpha_us=60, beta_gbytes=380, loss=0.6), 0, "collective-packet-loss"),
        (Link(alpha_us=60, beta_gbytes=95), 0, "collective-slow-rail"),
        (Link(alpha_us=60, beta_gbytes=190), 0, "collective-half-bandwidth"),
        (Link(alpha_us=60, beta_gbytes=380), 7, "collective-wrong-data"),
    ],
)
def test_a_link_is_judged_as_what_it_is(link: Link, wrong: int, cause: str) -> None:
    made = simulate("all_reduce", RANKS, SIZES, link, wrong=wrong)
    (run,) = read_runs(print_nccl_tests(made), GPU)
    assert isinstance(run, Sweep)
    main = sweep.judge(run, FABRIC)[0]
    assert (main.cause.slug if main.cause else "") == cause


def test_simulated_npus_and_nics_can_be_read() -> None:
    made = simulate("all_reduce", RANKS, SIZES, Link(alpha_us=100, beta_gbytes=130))
    told = Told(collective="all_reduce", nranks=16, hosts=2, reference_gbytes=130)
    (run,) = read_runs(print_hccl_test(made), told)
    assert isinstance(run, Sweep)
    assert sweep.judge(run, Fabric(reference_gbytes=130))[0].status == "skip"
    text = print_write_bw(
        [rate_of(8 << 20, 391.9)], device="mlx5_0", mtu=4096, link_type="Ethernet"
    )
    assert rdma.judge(perftest.parse(text), 400).status == "pass"
