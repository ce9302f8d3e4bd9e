"""The verdict matrix of a job's metrics, and what keeps it from guessing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.metrics.causes import BOUND, RDMA_UNUSED, WAITING
from commcheck.metrics.limits import Limits
from commcheck.metrics.load import load_of
from commcheck.metrics.quadrant import Quadrant, judge, quadrants
from commcheck.model import Cause, Kind, Status, Verdict
from tests.metrics.made import POINTS, Value, share

RATE = {"mlx5_0": 50e9}
RAILS = {"mlx5_0": 0}
Lines = Mapping[str, Mapping[str, Value]]


def lines(sm: Value, nic: Value, **more: Mapping[str, Value]) -> Lines:
    return {"sm": {"0": sm, "1": sm}, "nic_tx": {"mlx5_0": nic}, "nic_rate": RATE, **more}


@pytest.mark.parametrize(
    ("given", "status", "cause", "says"),
    [
        (lines(0.12, 46e9), Status.FAIL, BOUND, "SM active 12%, NIC mlx5_0 at 92% of 50 GB/s"),
        (lines(0.10, 5e9), Status.WARN, WAITING, "GPUs wait: SM active 10%"),
        (lines(0.85, 46e9), Status.PASS, None, "computing and communicating at once"),
        (lines(0.83, 5e9), Status.PASS, None, "compute bound"),
        # Received counts as sent: a host may only gather.
        (lines(0.12, 0, nic_rx={"mlx5_0": 46e9}), Status.FAIL, BOUND, "92% of 50 GB/s"),
        # What only comes is a dataset, what goes both ways is NCCL over sockets.
        (
            lines(0.1, 0, net_tx={"eth0": 2e9}, net_rx={"eth0": 1e9}),
            Status.WARN,
            RDMA_UNUSED,
            "1.00 GB/s go both ways over TCP",
        ),
        (
            lines(0.1, 0, net_tx={"eth0": 1e6}, net_rx={"eth0": 3e9}),
            Status.WARN,
            WAITING,
            "GPUs wait",
        ),
        # RDMA carries the job, whatever else goes over TCP.
        (
            lines(0.1, 5e9, net_tx={"eth0": 2e9}, net_rx={"eth0": 1e9}),
            Status.WARN,
            WAITING,
            "GPUs wait",
        ),
        # All traffic inside the host: the NIC is silent, NVLink is full (450 GB/s one way).
        (
            lines(0.1, 0, nvlink_tx={"0": 420e9, "1": 420e9}),
            Status.FAIL,
            BOUND,
            "NVLink at 93% of 450 GB/s",
        ),
        (lines(0.1, 0, nvlink_rx={"0": 90e9}), Status.WARN, WAITING, "NVLink carries 90 GB/s"),
        # A proxy of computing warns and never fails.
        (
            {**lines(0, 46e9), "sm": {}, "engine": {"0": 0.98}, "tensor": {"0": 0.01}},
            Status.WARN,
            BOUND,
            "tensor cores active 1%",
        ),
        (
            {**lines(0, 46e9), "sm": {}, "engine": {"0": 0.98}, "tensor": {"0": 0.4}},
            Status.PASS,
            None,
            "better: export DCGM_FI_PROF_SM_ACTIVE",
        ),
        (
            {
                "npu_percent": {"0": 4, "1": 4},
                "npu_tx_mbytes": {"0": 23e3, "1": 23e3},
                "npu_rate_mbits": {"0": 200e3, "1": 200e3},
            },
            Status.FAIL,
            BOUND,
            "AI cores active 4%, NIC of NPU 0 at 92% of 25 GB/s",
        ),
        # AI cores idle altogether: the port's traffic says that a job runs.
        (
            {"npu_percent": {"0": 0}, "npu_tx_mbytes": {"0": 23e3}, "npu_rate_mbits": {"0": 2e5}},
            Status.FAIL,
            BOUND,
            "AI cores active 0%",
        ),
        (
            {"npu_percent": {"0": 9}, "vector_percent": {"0": 80}, "npu_tx_mbytes": {"0": 23e3},
             "npu_rate_mbits": {"0": 2e5}},
            Status.PASS,
            None,
            "at once",
        ),
    ],
)  # fmt: skip
def test_matrix(given: Lines, status: Status, cause: Cause | None, says: str) -> None:
    verdict = judge(share(given), RAILS, None, Limits())
    assert (verdict.status, verdict.cause) == (status, cause)
    assert says in verdict.reason
    assert bool(verdict.figures) is (status is not Status.PASS)


GONE = [0.8] * 20 + [None] * 11
SHORT = [0.0] * 28 + [0.8] * 3


@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        ({}, Kind.UNDECIDABLE, "has no series of gpu-01"),
        ({"nic_tx": {"mlx5_0": 1.0}}, Kind.UNDECIDABLE, "nothing of the accelerators"),
        (
            lines(0.0, 0.0, util_percent={"0": 0, "1": 0}),
            Kind.NOT_APPLICABLE,
            "no training ran here in the last 30 min: 2 GPUs idle",
        ),
        # A checkpoint or a dataset on its way to idle GPUs is no training.
        (lines(0.0, 46e9), Kind.NOT_APPLICABLE, "no training ran here"),
        (lines(GONE, 46e9), Kind.UNDECIDABLE, "no sample of the GPUs for 11 min"),
        (lines(SHORT, 46e9), Kind.UNDECIDABLE, "training ran for 3 min only"),
        ({"util_percent": {"0": 100}}, Kind.UNDECIDABLE, "GPU_UTIL is 100 % also while"),
        ({"sm": {"0": 0.1}}, Kind.UNDECIDABLE, "run node_exporter"),
        (
            {"sm": {"0": 0.1}, "nic_tx": {"mlx5_0": 1.0}},
            Kind.UNDECIDABLE,
            "set commcheck_line_rate_gbits",
        ),
        (
            {"sm": {"0": 0.1}, "nic_tx": {"mlx5_7": 1.0}, "nic_rate": {"mlx5_7": 50e9}},
            Kind.UNDECIDABLE,
            "no series of mlx5_0, only of mlx5_7",
        ),
        (
            {"npu_percent": {"0": 5}, "npu_tx_mbytes": {"0": 23e3}},
            Kind.UNDECIDABLE,
            "commcheck_line_rate_gbits",
        ),
    ],
)
def test_what_is_not_known_is_not_healthy(given: Lines, kind: Kind, says: str) -> None:
    verdict = judge(share(given), RAILS, None, Limits())
    assert (verdict.status, verdict.kind) == (Status.SKIP, kind)
    assert says in verdict.reason


def test_a_storage_nic_at_line_rate_is_no_bottleneck() -> None:
    both = {
        "sm": {"0": 0.12},
        "nic_tx": {"mlx5_0": 1e9, "mlx5_9": 48e9},
        "nic_rate": {"mlx5_0": 50e9, "mlx5_9": 50e9},
    }
    assert judge(share(both), RAILS, None, Limits()).cause is WAITING
    unknown = judge(share(both), None, None, Limits())
    assert (unknown.status, unknown.cause) == (Status.WARN, BOUND)
    assert "name them in commcheck_nics" in unknown.reason


def test_a_link_that_is_surely_the_jobs_must_be_full_itself() -> None:
    """NVLink is the job's for sure and nearly idle; the NIC that is full may be storage's."""
    given = {
        "sm": {"0": 0.12},
        "nic_tx": {"mlx5_0": 1e9, "mlx5_9": 48e9},
        "nic_rate": {"mlx5_0": 50e9, "mlx5_9": 50e9},
        "nvlink_tx": {"0": 90e9},
    }
    verdict = judge(share(given), None, None, Limits())
    assert (verdict.status, verdict.cause) == (Status.WARN, BOUND)


def test_a_link_at_the_limit_is_full() -> None:
    at = Limits().link_high * 50e9
    assert judge(share(lines(0.12, at)), RAILS, None, Limits()).status is Status.FAIL
    assert judge(share(lines(0.12, 0.99 * at)), RAILS, None, Limits()).cause is WAITING


def test_the_numbers_of_the_report_are_means_over_the_training() -> None:
    given = lines([0.12] * 30 + [0.74], [46e9] * 31)
    measured = judge(share(given), RAILS, None, Limits()).measured
    assert measured["sm_active_percent"] == 14.0
    assert measured["nic_mlx5_0_percent"] == 92.0
    assert measured["minutes"] == {
        "communication bound": 30.0,
        "computing and communicating at once": 1.0,
    }


def test_the_declared_rate_stands_in_for_the_exporter() -> None:
    given = {"sm": {"0": 0.12}, "nic_tx": {"mlx5_0": 23e9}}
    assert judge(share(given), RAILS, 200, Limits()).cause is BOUND


def test_gpus_that_the_job_leaves_idle_do_not_count() -> None:
    busy = lines(0.9, 46e9, util_percent={str(n): 100 if n == 0 else 0 for n in range(8)})
    given = {**busy, "sm": {str(n): 0.9 if n == 0 else 0.0 for n in range(8)}}
    verdict = judge(share(given), RAILS, None, Limits())
    assert verdict.status is Status.PASS
    assert verdict.measured["gpus_working"] == 1


def test_a_check_of_all_gpus_before_the_job_does_not_count_against_it() -> None:
    """A prologue loads eight GPUs; the job that follows takes one."""
    check, idle = [0.5] * 3, [0.0] * 28
    others = {str(n): check + idle for n in range(1, 8)}
    given = {**lines(0.9, 5e9), "sm": {"0": check + [0.9] * 28, **others}}
    verdict = judge(share(given), RAILS, None, Limits())
    assert verdict.status is Status.PASS
    assert "SM active 86%" in verdict.reason
    one = {"0": [1e9] * 3 + [420e9] * 28}
    others = {str(n): [0.0] * 31 for n in range(1, 8)}
    given = {**given, "sm": {**given["sm"], "0": [0.1] * 31}, "nvlink_tx": {**one, **others}}
    assert "NVLink at 93% of 450 GB/s" in judge(share(given), RAILS, None, Limits()).reason


ALL_BUSY = {"util_percent": {"0": 100, "1": 100}}


@pytest.mark.parametrize(
    "part",
    [
        {"sm": {"0": 0.0, "1": 0.0}},
        {"engine": {"0": 0.0, "1": 0.0}, "tensor": {"0": 0.0, "1": 0.0}},
    ],
)
@pytest.mark.parametrize("nic", [46e9, 5e9])
def test_profiling_fields_that_are_stuck_at_zero_are_not_believed(part: Lines, nic: float) -> None:
    given = {**lines(0, nic), "sm": {}, **part, **ALL_BUSY}
    verdict = judge(share(given), RAILS, None, Limits())
    assert verdict.kind is Kind.UNDECIDABLE
    assert "restart dcgm-exporter: its profiling fields stand at 0" in verdict.reason


def test_one_gpu_whose_profiling_is_stuck_leaves_the_others_to_tell() -> None:
    given = {**lines(0.9, 5e9, **ALL_BUSY), "sm": {"0": 0.0, "1": 0.9}}
    verdict = judge(share(given), RAILS, None, Limits())
    assert verdict.status is Status.PASS
    assert "SM active 90%" in verdict.reason
    assert "restart dcgm-exporter" in verdict.reason
    # Tensor cores may well be idle, and SMs nearly: the engine and a kernel of NCCL are not.
    for sm in ({"sm": {"0": 0.008}}, {"engine": {"0": 0.9}, "tensor": {"0": 0.0}}):
        given = {**lines(0, 46e9), "sm": {}, **sm, "util_percent": {"0": 100}}
        assert judge(share(given), RAILS, None, Limits()).cause is BOUND


def test_a_gpu_that_two_exporters_tell_of_weighs_no_more_than_another() -> None:
    metrics = share(lines(0.1, 5e9))
    (one, other) = metrics.lines["sm"]
    busy = replace(other, values=(0.6,) * POINTS)
    metrics = replace(metrics, lines={**metrics.lines, "sm": (one, one, one, busy)})
    load = load_of(metrics, RAILS, None, Limits())
    assert load is not None
    assert load.compute is not None
    assert set(load.compute.curve) == {0.35}


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("NVIDIA H100 80GB HBM3", "NVLink at 58% of 450 GB/s"),
        ("NVIDIA H100 PCIe", "NVLink at 87% of 300 GB/s"),
        ("NVIDIA-H100-NVL", "NVLink at 87% of 300 GB/s"),
        ("NVIDIA H200 NVL", "NVLink at 58% of 450 GB/s"),
        ("NVIDIA GH200 480GB", "NVLink at 58% of 450 GB/s"),
    ],
)
def test_nvlink_is_as_wide_as_the_card_has_it(model: str, says: str) -> None:
    metrics = share(lines(0.1, 0, nvlink_tx={"0": 260e9}))
    (line,) = metrics.lines["nvlink_tx"]
    named = replace(line, labels={**line.labels, "modelName": model})
    metrics = replace(metrics, lines={**metrics.lines, "nvlink_tx": (named,)})
    assert says in judge(metrics, RAILS, None, Limits()).reason


BOND = {"nic_rate": {"mlx5_bond_0": 25e9}}


@pytest.mark.parametrize(
    ("rails", "declared", "gbytes", "says"),
    [
        # It counts what all of its ports carry, and tells the rate of one.
        ({"mlx5_bond_0": 2}, None, 21e9, "NIC mlx5_bond_0 at 42% of 50 GB/s"),
        ({"mlx5_bond_0": 2}, 200, 45e9, "NIC mlx5_bond_0 at 90% of 50 GB/s"),
        ({"mlx5_bond_0": 0}, None, 21e9, "at 42% of 50 GB/s"),
        (None, None, 21e9, "at 42% of 50 GB/s"),
        # A kernel that tells the rate of the whole is put right by what is declared.
        ({"mlx5_bond_0": 2}, 100, 21e9, "at 84% of 25 GB/s"),
        ({"mlx5_bond_0": 1}, None, 21e9, "at 84% of 25 GB/s"),
    ],
)
def test_a_bond_carries_what_its_ports_do(
    rails: Mapping[str, int] | None, declared: int | None, gbytes: float, says: str
) -> None:
    given = {"sm": {"0": 0.1}, "nic_tx": {"mlx5_bond_0": gbytes}, **BOND}
    verdict = judge(share(given), rails, declared, Limits())
    assert says in verdict.reason
    assert verdict.cause is (WAITING if "42%" in says else BOUND)


@pytest.mark.parametrize(
    ("given", "more", "no_rdma", "says"),
    [
        ({"nic_rate": RATE}, {}, "", "have node_exporter scraped every two minutes or more often"),
        ({}, {"strays": {"NICs": ("192.0.2.7",)}}, "", "the server has NICs of 192.0.2.7"),
        ({}, {}, "its network is TCP", "its network is TCP"),
    ],
)
def test_why_no_nic_is_known(
    given: Lines, more: dict[str, object], no_rdma: str, says: str
) -> None:
    verdict = judge(share({"sm": {"0": 0.1}, **given}, **more), RAILS, None, Limits(), no_rdma)
    assert verdict.kind is Kind.UNDECIDABLE
    assert says in verdict.reason
    assert "infiniband collector" not in verdict.reason


def test_what_the_server_warns_of_stands_where_something_is_missing() -> None:
    """Thanos and Mimir answer in part, and say so: the exporter may well be there."""
    warnings = ("store a:10901: deadline exceeded", "store b")
    for part in ({}, {"nic_tx": {"mlx5_0": 1.0}}, {"sm": {"0": 0.1}}):
        verdict = judge(share(part, warnings=warnings), RAILS, None, Limits())
        assert verdict.kind is Kind.UNDECIDABLE
        assert "; it warns: store a:10901: deadline exceeded and 1 more; " in verdict.reason
    assert "warns" not in judge(share(lines(0.1, 5e9)), RAILS, None, Limits()).reason


def test_no_traffic_at_all_may_be_traffic_that_nobody_sees() -> None:
    said = "RDMA devices that pods have to themselves (SR-IOV)"
    assert said in judge(share(lines(0.1, 0.0)), RAILS, None, Limits()).reason
    assert said not in judge(share(lines(0.1, 5e9)), RAILS, None, Limits()).reason


def test_accelerators_of_a_name_that_no_host_has_are_pointed_at() -> None:
    metrics = share({"nic_tx": {"mlx5_0": 1.0}}, strays={"accelerators": ("dcgm-x7k2p",)})
    verdict = judge(metrics, RAILS, None, Limits())
    assert "the server has accelerators of dcgm-x7k2p, which no host here" in verdict.reason


def test_a_phase_that_is_bound_is_told_though_most_of_the_time_is_not() -> None:
    given = lines([0.8] * 21 + [0.1] * 10, [5e9] * 21 + [46e9] * 10)
    verdict = judge(share(given), RAILS, None, Limits())
    assert (verdict.status, verdict.cause) == (Status.WARN, BOUND)
    assert "for 10 of 31 min" in verdict.reason


def test_what_held_for_longest_speaks_however_short_it_was() -> None:
    given = lines([0.1] * 4 + [0.8] * 2 + [0.0] * 25, [46e9] * 4 + [5e9] * 2 + [0.0] * 25)
    verdict = judge(share(given), RAILS, None, Limits())
    assert (verdict.status, verdict.cause) == (Status.FAIL, BOUND)
    assert "for 4 of 6 min" in verdict.reason


def test_between_the_limits_of_computing_nothing_is_said() -> None:
    def at(tensor: float) -> Verdict:
        given = {**lines(0, 5e9), "sm": {}, "engine": {"0": 0.98}, "tensor": {"0": tensor}}
        return judge(share(given), RAILS, None, Limits())

    assert at(Limits().tensor_high).status is Status.PASS
    assert at(Limits().tensor_low).kind is Kind.UNDECIDABLE


@pytest.mark.parametrize("nic", [5e9, 35e9, 46e9])
@pytest.mark.parametrize(
    ("sm", "status"), [(0.2, Status.SKIP), (0.41, Status.SKIP), (0.5, Status.PASS)]
)
def test_more_than_waiting_is_not_yet_computing(sm: float, status: Status, nic: float) -> None:
    """NCCL's own kernels come to a quarter of the SMs; below half NVIDIA calls it ineffective."""
    verdict = judge(share(lines(sm, nic)), RAILS, None, Limits())
    assert verdict.status is status
    if status is Status.SKIP:
        assert f"SM active {sm:.0%}, NIC mlx5_0 at {nic / 50e9:.0%}" in verdict.reason
        assert "commcheck analyze trace" in verdict.reason
        (figure,) = verdict.figures
        assert '{"name": "computes", "y": 50.0}' in json.dumps(figure.data)


def test_samples_that_are_missing_are_not_filled_in() -> None:
    given = lines(0.1, [46e9] * 5 + [None] * 26)
    assert judge(share(given), RAILS, None, Limits()).cause is BOUND
    given = lines(0.1, [46e9] * 3 + [None] * 28)
    assert judge(share(given), RAILS, None, Limits()).kind is Kind.UNDECIDABLE


_RATIO = st.one_of(st.none(), st.floats(0, 1.2))


@given(
    sm=st.lists(_RATIO, min_size=POINTS, max_size=POINTS),
    nic=st.lists(_RATIO, min_size=POINTS, max_size=POINTS),
    rails=st.sampled_from([None, RAILS, {"mlx5_1": 0}]),
)
@settings(max_examples=60)
def test_nothing_passes_that_was_not_seen_computing(
    sm: list[float | None], nic: list[float | None], rails: Mapping[str, int] | None
) -> None:
    limits = Limits()
    metrics = share(lines(sm, [None if v is None else v * 50e9 for v in nic]))
    verdict = judge(metrics, rails, None, limits)
    load = load_of(metrics, rails, None, limits)
    assert load is not None
    fields = quadrants(load, limits)
    if verdict.status is Status.PASS:
        computing = [value for value in sm if value is not None and value >= limits.sm_high]
        assert len(computing) >= sum(each is not None for each in fields) / 5
        assert fields.count(Quadrant.BOUND) < limits.least_min
    if verdict.status is Status.FAIL:
        full = [v for v in nic if v is not None and v >= limits.link_high - 1e-9]
        assert fields.count(Quadrant.BOUND) <= len(full)
        assert fields.count(Quadrant.BOUND) > 0
