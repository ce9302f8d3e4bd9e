"""The judge on hand-built runs: bounds, limits, signatures, and what never counts as bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.jobs import causes, causes_places, sweep
from commcheck.jobs.bound import Fabric, expectation
from commcheck.jobs.fit import shape
from commcheck.jobs.proof import Asked
from commcheck.jobs.reading import GIB, MIB, Half, Iterations, Rank, Row, State, Sweep, factor
from commcheck.model import Status

H100 = "NVIDIA H100 80GB HBM3"
FABRIC = Fabric(nic_gbits=400, rails=8)
P5 = Fabric(nic_gbits=100, rails=32, gpus=8)  # AWS p5.48xlarge: 4 NICs for each GPU
RING = replace(FABRIC, algorithm="Ring")
VERDICT_SIZES = tuple(1 << power for power in range(20, 34))


def ranks_on(hosts: int, each: int = 8, gpu: str = H100) -> tuple[Rank, ...]:
    return tuple(Rank(at, f"gpu-{at // each:02}", at % each, gpu) for at in range(hosts * each))


def rows_of(
    busbw: Callable[[int], float],
    collective: str = "all_reduce",
    ranks: int = 16,
    sizes: Sequence[int] = VERDICT_SIZES,
    in_place: float = 1.0,
) -> tuple[Row, ...]:
    """Rows of a curve: busbw in GB/s by size; ``in_place`` is the other placement's share."""
    times = factor(collective, ranks)

    def half(size: int, bus: float) -> Half:
        return Half(size / (bus / times) / 1e3, bus / times, bus, 0.0)

    return tuple(
        Row(size, size // 4, "float", "sum", -1, half(size, value), half(size, value * in_place))
        for size in sizes
        for value in (busbw(size),)
    )


def alpha_beta(peak: float, alpha_us: float = 60.0, ranks: int = 16) -> Callable[[int], float]:
    times = factor("all_reduce", ranks)
    return lambda size: times * size / (alpha_us + size / (peak / times) / 1e3) / 1e3


def run(rows: Sequence[Row], hosts: int = 2, collective: str = "all_reduce", **kw: object) -> Sweep:
    made = Sweep(
        tool="nccl-tests",
        state=State.COMPLETE,
        collective=collective,
        nranks=hosts * 8,
        ranks=ranks_on(hosts),
        rows=tuple(rows),
        validation=True,
        out_of_bounds=0,
        iterations=20,
    )
    return replace(made, **kw)  # type: ignore[arg-type] # fields of a Sweep


def verdict_of(made: Sweep, fabric: Fabric = RING, asked: Asked | None = None) -> tuple[str, str]:
    verdict = sweep.judge(made, fabric, asked)[0]
    return verdict.status.value, verdict.cause.slug if verdict.cause else ""


# --- bounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("collective", "hosts", "fabric", "bound", "hides"),
    [
        ("all_reduce", 2, RING, 400, 1.0),
        ("all_reduce", 2, FABRIC, 400, 1.875),
        ("all_reduce", 8, FABRIC, 400, 1.125),
        ("all_gather", 2, FABRIC, 400, 1.0),
        ("reduce_scatter", 4, FABRIC, 400, 1.0),
        ("all_gather", 2, Fabric(nic_gbits=100, rails=4), 50, 1.0),
        ("all_gather", 2, P5, 400, 1.0),
        ("alltoall", 2, P5, 93.75, 1.0),
        ("sendrecv", 2, P5, 12.5, 1.0),
        ("all_gather", 2, replace(FABRIC, rails=10, gpus=8), 400, 1.0),  # two serve the host
        ("alltoall", 2, FABRIC, 93.75, 1.0),
        ("alltoall", 8, FABRIC, 56.25, 1.0),
        ("sendrecv", 2, FABRIC, 50, 1.0),
        ("broadcast", 2, FABRIC, 400, 1.0),
    ],
)
def test_network_bounds(
    collective: str, hosts: int, fabric: Fabric, bound: float, hides: float
) -> None:
    made = run((), hosts, collective)
    found, missing = expectation(made, fabric, hosts)
    assert found is not None, missing
    assert found.gbytes == pytest.approx(bound)
    assert found.hides == pytest.approx(hides, rel=1e-3)
    assert f"{bound:g}" in found.sum


def test_one_gpu_a_host_has_one_nic() -> None:
    made = run((), 2, "all_gather", nranks=2, ranks=ranks_on(2, 1))
    found, _ = expectation(made, FABRIC, 2)
    assert found is not None
    assert (found.gbytes, found.ceiling, found.most) == (50, 400, 400)
    found, _ = expectation(made, replace(FABRIC, gpus=8), 2)
    assert found is not None
    assert (found.gbytes, found.most) == (50, None)


@pytest.mark.parametrize(
    ("fabric", "share"), [(FABRIC, 1), (Fabric(nic_gbits=400, rails=4), 0.5), (P5, 4)]
)
def test_groups_that_run_at_once_share_the_nics(fabric: Fabric, share: float) -> None:
    rails = tuple(replace(rank, group=rank.device) for rank in ranks_on(2))
    found, _ = expectation(run((), 2, "all_gather", ranks=rails, split=True), fabric, 2)
    assert found is not None
    assert found.gbytes == pytest.approx(share * (fabric.nic_gbits or 0) / 8)


@pytest.mark.parametrize(("count", "reference"), [(4, 363), (8, 470)])
def test_reference_is_for_the_number_of_gpus(count: int, reference: float) -> None:
    made = run((), 1, nranks=count, ranks=ranks_on(1, count))
    found, _ = expectation(made, FABRIC, 1)
    assert found is not None
    assert found.gbytes == reference


@pytest.mark.parametrize(
    ("made", "fabric", "says"),
    [
        (run(()), Fabric(), "--nic-gbps"),
        (run((), 1, ranks=ranks_on(1, 8, "NVIDIA H20")), FABRIC, "--reference"),
        (run((), 1, ranks=ranks_on(1, 8, "NVIDIA H100 PCIe")), FABRIC, "--reference"),
        (run((), 1, ranks=ranks_on(1, 8, "NVIDIA A100-PCIE-40GB")), FABRIC, "--reference"),
        (run((), collective="unknown", ranks=(), nranks=None), FABRIC, "how many ranks"),
    ],
)
def test_without_an_expectation_nothing_passes(made: Sweep, fabric: Fabric, says: str) -> None:
    whole = replace(made, rows=rows_of(lambda _: 375.0))
    (verdict,) = sweep.judge(whole, fabric)
    assert verdict.status is Status.SKIP
    assert says in verdict.reason


# --- level and signature ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("peak", "status", "cause"),
    [
        (375, "pass", ""),
        (345, "pass", ""),
        (330, "warn", "collective-slow"),
        (281, "warn", "collective-slow"),
        (190, "fail", "collective-half-bandwidth"),
        (95, "fail", "collective-slow-rail"),
        (47, "fail", "collective-few-nics"),
        (2.8, "fail", "collective-tcp-fallback"),
    ],
)
def test_levels_of_the_network(peak: float, status: str, cause: str) -> None:
    curve = alpha_beta(peak, 60 if peak > 10 else 300)
    sizes = tuple(1 << power for power in range(10, 34))
    assert verdict_of(run(rows_of(curve, sizes=sizes))) == (status, cause)


@pytest.mark.parametrize(
    ("log", "peak", "cause"),
    [
        ("h:1:1 [0] NCCL INFO Using network Socket", 30, "collective-tcp-fallback"),
        ("h:1:1 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/0", 160,
         "collective-no-gpudirect"),
        ("h:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0",
         95, "collective-few-nics"),
        ("h:1:1 [0] NCCL INFO Using network IB", 2.8, "collective-slow"),
        ("h:1:1 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.", 30,
         "collective-tcp-fallback"),
        ("h:1:1 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IBext_v8/0", 160,
         "collective-no-gpudirect"),
        ("h:1:1 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [send] via NET/AWS Libfabric/0/Shared",
         160, "collective-no-gpudirect"),
        ("h:1:1 [0] NCCL INFO NET/IB : Using " + " ".join(
            f"[{n}]={{[0] mlx5_{2 * n}:1/RoCE, [1] mlx5_{2 * n + 1}:1/RoCE}}" for n in range(4))
         + " [RO]; OOB eth0:192.0.2.11<0>", 190, "collective-half-bandwidth"),
    ],
)  # fmt: skip
def test_what_nccl_says_outweighs_the_curve(log: str, peak: float, cause: str) -> None:
    made = run(rows_of(alpha_beta(peak)), log=(log,))
    assert verdict_of(made) == ("fail", cause)


def test_a_curve_that_falls_is_loss_also_where_its_peak_is_high() -> None:
    made = run(rows_of(lambda size: 380.0 if size <= 64 * MIB else 150.0))
    assert verdict_of(made) == ("fail", "collective-packet-loss")


def test_more_than_the_network_can_carry_is_no_pass() -> None:
    made = run(rows_of(alpha_beta(480)), collective="all_gather")
    (verdict,) = sweep.judge(made, RING)
    assert verdict.status is Status.SKIP
    assert "more than the network can carry" in verdict.reason
    assert verdict_of(run(rows_of(alpha_beta(480))), FABRIC) == ("pass", "")


@pytest.mark.parametrize(
    ("peak", "fabric", "status"),
    [
        (385, P5, "pass"),
        (150, P5, "fail"),  # of one NIC for each GPU it were 150 %
        (150, replace(P5, gpus=None), "skip"),  # nobody knows whether all 32 are for training
        (385, replace(P5, gpus=None), "pass"),
        (60, replace(P5, gpus=None), "fail"),
    ],
)
def test_more_nics_than_gpus(peak: float, fabric: Fabric, status: str) -> None:
    made = run(rows_of(alpha_beta(peak), "all_gather"), collective="all_gather")
    verdict = sweep.judge(made, fabric)[0]
    assert verdict.status.value == status, verdict.reason
    if status == "skip":
        assert "150% of 100 GB/s" in verdict.reason
        assert "37% of 400 GB/s if the 32 NICs" in verdict.reason
        assert "--gpus" in verdict.reason


@pytest.mark.parametrize(("peak", "status"), [(380, "pass"), (190, "skip"), (90, "fail")])
def test_of_a_bond_a_connection_may_use_one_port_or_all(peak: float, status: str) -> None:
    bonds = Fabric(nic_gbits=200, rails=8, gpus=8, ports=2, algorithm="Ring")
    made = run(rows_of(alpha_beta(peak), "all_gather"), collective="all_gather")
    verdict = sweep.judge(made, bonds)[0]
    assert verdict.status.value == status, verdict.reason
    assert ("with both ports of each bond" in verdict.reason) is (status == "skip")


def test_a_short_sweep_that_still_rises_is_not_judged_slow() -> None:
    made = run(rows_of(alpha_beta(375, 400.0), sizes=VERDICT_SIZES[:8]))
    (verdict,) = sweep.judge(made, RING)
    assert verdict.status is Status.SKIP
    assert "still rises" in verdict.reason


def test_the_average_footer_decides_nothing() -> None:
    made = run(rows_of(alpha_beta(375)), avg_busbw=3.0)
    assert verdict_of(made) == ("pass", "")


# --- shape --------------------------------------------------------------------------------------


def test_a_dip_warns() -> None:
    healthy = run(rows_of(lambda size: 84.9 if size == 64 * MIB else 98.0))
    reference = Fabric(reference_gbytes=98)
    assert [v.status.value for v in sweep.judge(healthy, reference)] == ["pass"]
    dipped = run(rows_of(lambda size: 70.0 if size == 64 * MIB else 98.0))
    _, beside = sweep.judge(dipped, reference)
    assert (beside.status, beside.cause) == (Status.WARN, causes.DIP)


@pytest.mark.parametrize(("share", "status"), [(0.95, "pass"), (0.85, "warn"), (0.7, "fail")])
def test_placements_that_differ(share: float, status: str) -> None:
    found = sweep.judge(run(rows_of(alpha_beta(375), in_place=share)), RING)
    assert status in [verdict.status.value for verdict in found]
    assert ("fail" in [verdict.status.value for verdict in found]) == (status == "fail")


@pytest.mark.parametrize(("low", "status"), [(370, "pass"), (340, "warn"), (260, "fail")])
def test_cycles_that_differ(low: float, status: str) -> None:
    rows = rows_of(lambda _: 375.0) + rows_of(lambda _: low)
    found = sweep.judge(run(rows), RING)
    worst = "fail" if any(v.status is Status.FAIL for v in found) else found[-1].status.value
    assert worst == status


def test_one_slow_iteration_is_told_apart_from_an_unsteady_run() -> None:
    def with_times(times: tuple[float, ...]) -> Sweep:
        mean = sum(times) / len(times)
        cv = 100 * (sum((t - mean) ** 2 for t in times) / len(times)) ** 0.5 / mean
        iterations = Iterations(min(times), max(times), max(times), cv, times)
        (row,) = rows_of(lambda _: 375.0, sizes=(8 * GIB,))
        half = row.halves[0]
        scale = half.time_us / mean
        scaled = replace(
            iterations,
            max_us=iterations.max_us * scale,
            times_us=tuple(t * scale for t in times),
        )
        return run((replace(row, out_of_place=replace(half, iterations=scaled)),))

    _, beside = sweep.judge(with_times((100.0,) * 7 + (210.0,) + (100.0,) * 12), RING)
    assert beside.cause == causes.SLOW_ITERATION
    assert "iteration 7" in beside.reason
    main, *_ = sweep.judge(with_times((100.0, 150.0) * 10), RING)
    assert (main.status, main.cause) == (Status.FAIL, causes.UNSTEADY)


def test_slow_small_messages_warn() -> None:
    sizes = tuple(1 << power for power in range(10, 34))
    _, beside = sweep.judge(run(rows_of(alpha_beta(380, 400.0), sizes=sizes)), RING)
    assert beside.cause == causes.LATENCY


# --- a run that is not what was asked for -------------------------------------------------------

GOOD = rows_of(alpha_beta(375))


@pytest.mark.parametrize(
    ("made", "asked", "error"),
    [
        (run(GOOD, 1), Asked(nranks=16), "NotMultiRank"),
        (run(GOOD), Asked(nranks=32), "NotMultiRank"),
        (run(GOOD), Asked(hosts=("gpu-00", "gpu-07")), "NotMultiNode"),
        (run(GOOD), Asked(host_count=4), "NotMultiNode"),
        (run(GOOD), Asked(collective="all_gather"), "OtherCollective"),
        (run(GOOD, reduced_to=8 * GIB), Asked(max_bytes=16 * GIB), "SizesTrimmed"),
        (run(GOOD, state=State.TRUNCATED), Asked(), "RunTruncated"),
        (run(GOOD, state=State.CRASHED), Asked(), "RunCrashed"),
        (run(GOOD, state=State.NOT_MULTI_RANK, tables=2), Asked(), "NotMultiRank"),
        (run(GOOD, problems=("a row is missing",)), Asked(), "SelfCheck"),
        (run((), doubtful=(replace(GOOD[0], doubt="no"),)), Asked(), "SelfCheck"),
    ],
)
def test_a_run_that_did_not_prove_itself_is_an_error(made: Sweep, asked: Asked, error: str) -> None:
    (verdict,) = sweep.judge(made, RING, asked)
    assert (verdict.status, verdict.error) == (Status.ERROR, error)
    assert "busbw_gbytes" not in verdict.measured


def test_a_run_on_fewer_hosts_was_built_with_mpi_all_the_same() -> None:
    (fewer,) = sweep.judge(run(GOOD), RING, Asked(nranks=32))
    assert (fewer.cause, fewer.reason) == (
        causes.OTHER_RUN,
        "16 ranks took part, 32 were asked for",
    )
    (hosts,) = sweep.judge(run(GOOD), RING, Asked(host_count=4))
    assert hosts.cause == causes.OTHER_RUN
    (alone,) = sweep.judge(run(GOOD, 1), RING, Asked(nranks=16))
    assert alone.cause == causes.NO_MPI


def test_what_was_asked_for_passes() -> None:
    asked = Asked(
        collective="all_reduce",
        nranks=16,
        hosts=("gpu-01", "gpu-00"),
        host_count=2,
        max_bytes=8 * GIB,
    )
    assert verdict_of(run(GOOD), RING, asked) == ("pass", "")


@pytest.mark.parametrize(
    "wrong",
    [
        run(GOOD, out_of_bounds=3),
        run(GOOD, failed_ranks=(9,)),
        run((*GOOD[:-1], replace(GOOD[-1], in_place=Half(1, 1, 1, 5.0)))),
    ],
)
def test_wrong_data_fails_whatever_its_speed(wrong: Sweep) -> None:
    assert verdict_of(wrong, Fabric()) == ("fail", "collective-wrong-data")


def test_a_split_run_is_held_against_its_group() -> None:
    rails = tuple(replace(rank, group=rank.device) for rank in ranks_on(2))
    rows = rows_of(lambda _: 47.0, ranks=2)
    made = run(rows, ranks=rails, split=True)
    (verdict,) = sweep.judge(made, RING)
    assert verdict.status is Status.PASS
    assert "one slow group hides" in verdict.reason


# --- the fit ------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(peak=st.floats(1, 800), alpha=st.floats(10, 1000))
def test_the_fit_finds_alpha_and_beta(peak: float, alpha: float) -> None:
    sizes = tuple(1 << power for power in range(3, 34))
    form = shape(rows_of(alpha_beta(peak, alpha), sizes=sizes))
    assert form is not None
    assert form.asymptote == pytest.approx(peak, rel=1e-3)
    assert form.alpha_us is not None
    assert alpha <= form.alpha_us <= alpha + (64 << 10) / peak / 1e3 * factor("all_reduce", 16)
    assert form.knee is not None
    half = dict(form.points)[form.knee]
    assert half >= form.peak / 2


def test_no_rows_have_no_shape() -> None:
    assert shape(()) is None
    assert shape((Row(0, 0, "float", "none", -1, Half(1, 0, 0), None),)) is None


def test_every_signature_is_declared_and_has_remedies_in_two_languages() -> None:
    rdma = (causes.RDMA_SLOW, causes.RDMA_FALLS, causes.RDMA_PCIE)
    known = (*causes.SIGNATURES, *rdma, *causes_places.PLACES)
    assert len({cause.slug for cause in known}) == len(known)
    for cause in known:
        assert cause.remedies
        for words in (cause.title, cause.meaning, *(each.effect for each in cause.remedies)):
            assert words.en
            assert any("一" <= letter <= "鿿" for letter in words.zh), words
