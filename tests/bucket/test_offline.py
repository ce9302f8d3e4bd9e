"""Files in, one advice out: traces, descriptions, sweeps; and every way they can be wrong."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.bucket import description, link, simulate
from commcheck.bucket.from_trace import read_work
from commcheck.bucket.layout import DDP, MIB
from commcheck.bucket.link import Link
from commcheck.bucket.offline import Given, analyse_bucket
from commcheck.bucket.simulate import Costs
from commcheck.bucket.work import laid_over
from commcheck.errors import UsageError
from commcheck.frameworks.causes import TOO_LARGE, TOO_SMALL, WIRE_BOUND
from commcheck.jobs.reading import factor
from commcheck.model import Kind, Status, Verdict
from commcheck.report.charts import curve
from tests.bucket.recorded import GLOO, SLEEP_1, SLEEP_2, model, recorded
from tests.trace.expected import made

COLLECTIVES = Path(__file__).parents[1] / "recorded" / "collectives"
TRACES = Path(__file__).parents[1] / "recorded" / "traces"
GOOD_SWEEP = COLLECTIVES / "02_allreduce_2node_16xh100_400g_ring_good.txt"
JOB = {"layers": 24, "kernels": 3, "steps": 3, "ranks": 1, "world": 16, "layer_mb": 8.0,
       "busbw": 20.0, "alpha_us": 60.0, "kernel_us": 120.0, "overlap": 1.0}  # fmt: skip
TOLD = Given(alpha_us=60.0, busbw_gbytes=20.0)


def trace(folder: Path, **options: Any) -> Path:
    folder.mkdir(exist_ok=True)
    paths, _ = made(folder, **{**JOB, **options})
    return paths[0]


def described(folder: Path, name: str = SLEEP_1, factor: float = 1.0) -> Path:
    path = folder / "model.json"
    path.write_text(json.dumps(model(recorded(name), factor)))
    return path


def only(verdicts: tuple[Verdict, ...]) -> Verdict:
    (verdict,) = verdicts
    return verdict


def verdicts(paths: list[Path], options: Given = TOLD) -> tuple[Verdict, ...]:
    (result,) = analyse_bucket(paths, options).results
    return tuple(finding.verdict for finding in result.findings)


# --- traces -------------------------------------------------------------------------------------


def test_a_traced_step_is_predicted_with_its_own_buckets_and_with_others(tmp_path: Path) -> None:
    wire = link.given(60, 20 / factor("all_reduce", 16))
    traced = {mb: read_work(trace(tmp_path / str(mb), bucket_mb=mb)) for mb in (8, 16, 48, 96)}
    for mb, one in traced.items():
        assert one.ranks == 16
        for other in (8, 16, 48, 96):
            (at,) = simulate.sweep(one.work, wire, Costs(), DDP, [other * 1e6 / MIB])
            # Within a bucket gradients are taken to get ready evenly: larger ones tell less.
            near = 0.01 if mb <= other else 0.03
            assert at.step_us == pytest.approx(traced[other].step_us, rel=near), (mb, other)


def test_large_buckets_of_a_trace_fail_and_say_what_to_set(tmp_path: Path) -> None:
    analysis = analyse_bucket([trace(tmp_path, bucket_mb=96)], TOLD)
    (result,) = analysis.results
    verdict = result.findings[0].verdict
    assert verdict.status is Status.FAIL
    assert verdict.cause is TOO_LARGE
    (remedy,) = verdict.remedies
    best = verdict.measured["best"]
    assert remedy.command == f"DistributedDataParallel(model, bucket_cap_mb={best:g})"
    assert any(line.startswith(f"set: bucket_cap_mb={best:g}") for line in analysis.screen)
    assert any("is predicted with" in note for note in analysis.notes)
    assert result.findings[0].bounds
    (figure,) = verdict.figures
    assert curve.draw(figure.data) is not None
    json.dumps(analysis.facts)
    json.dumps(figure.data)


def test_one_bucket_is_a_guess_and_only_warns(tmp_path: Path) -> None:
    verdict, *_ = verdicts([trace(tmp_path, bucket_mb=400)])
    assert verdict.status is Status.WARN
    assert verdict.cause is TOO_LARGE


def test_small_buckets_of_a_trace(tmp_path: Path) -> None:
    path = trace(tmp_path, bucket_mb=0.4, layer_mb=0.4, layers=60, kernel_us=20, alpha_us=150)
    verdict, *_ = verdicts([path], Given(alpha_us=150.0, busbw_gbytes=20.0))
    assert verdict.cause is TOO_SMALL
    assert verdict.status is Status.FAIL


def test_good_buckets_pass(tmp_path: Path) -> None:
    verdict = only(verdicts([trace(tmp_path, bucket_mb=8)]))
    assert verdict.status is Status.PASS
    assert "within" in verdict.reason


def test_a_network_of_one_size_is_not_known(tmp_path: Path) -> None:
    verdict = only(verdicts([trace(tmp_path, bucket_mb=16)], Given()))
    assert verdict.kind is Kind.UNDECIDABLE
    assert "give a sweep" in verdict.reason


def test_a_network_is_fitted_on_the_traces_own_collectives(tmp_path: Path) -> None:
    path = trace(tmp_path, bucket_mb=50)  # 56, 56, 56 and 24 MB
    found = read_work(path).link
    assert found is not None
    assert found.alpha_us == pytest.approx(60, rel=0.01)
    assert found.beta_gbytes == pytest.approx(20 / factor("all_reduce", 16), rel=0.01)
    analysis = analyse_bucket([path])
    assert any("own collectives" in note for note in analysis.notes)


def test_a_sweep_gives_the_network(tmp_path: Path) -> None:
    analysis = analyse_bucket([trace(tmp_path, bucket_mb=96), GOOD_SWEEP])
    assert GOOD_SWEEP.name in analysis.screen[1]
    analysis = analyse_bucket([trace(tmp_path, bucket_mb=96, world=64), GOOD_SWEEP])
    assert any("16 ranks, and the job has 64" in note for note in analysis.notes)


def test_a_sweep_of_another_network_decides_nothing(tmp_path: Path) -> None:
    path = trace(tmp_path, bucket_mb=96)
    verdict = only(verdicts([path], Given(alpha_us=60.0, busbw_gbytes=400.0)))
    assert verdict.kind is Kind.UNDECIDABLE
    assert "do not belong together" in verdict.reason
    assert verdict.figures


def test_a_size_that_the_trace_does_not_have_is_told_so(tmp_path: Path) -> None:
    """The network is measured against the trace's own buckets, whatever size is said to be set."""
    path = trace(tmp_path, bucket_mb=16)
    options = replace(TOLD, current=400.0)
    notes = analyse_bucket([path], options).notes
    assert any("other buckets than bucket_cap_mb=400" in note for note in notes)
    notes = analyse_bucket([path], replace(TOLD, current=16.0)).notes
    assert not any("other buckets" in note for note in notes)
    path = trace(tmp_path / "96", bucket_mb=96)
    verdict = only(verdicts([path], Given(alpha_us=60.0, busbw_gbytes=400.0, current=16.0)))
    assert "do not belong together" in verdict.reason


def test_a_sweep_that_begins_late_tells_nothing_of_small_buckets(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    gradients = [{"bytes": 1_000_000, "count": 50}]
    path.write_text(json.dumps({"backward_ms": 40, "gradients": gradients}))
    options = Given(ranks=16, current=1.0)
    verdict = only(verdicts([path, GOOD_SWEEP], options))
    assert verdict.kind is Kind.UNDECIDABLE
    assert "-b 8" in verdict.reason
    larger = analyse_bucket([path, GOOD_SWEEP], Given(ranks=16, current=16.0))
    best = larger.facts["best"]
    assert isinstance(best, dict)
    assert best["cap_bytes"] >= 8e6


def retold(path: Path, *pairs: tuple[str, str]) -> Path:
    """The trace of another framework or type: words of it are replaced."""
    text = path.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return path


BF16 = ('"dtype": "Float"', '"dtype": "BFloat16"')
MEGATRON = ("default_pg", "DATA_PARALLEL_GROUP_WITH_CP")


def test_elements_are_as_large_as_the_trace_says(tmp_path: Path) -> None:
    """Of 16 bits twice as many fit into the same bytes."""
    options = Given(framework="deepspeed", alpha_us=60.0, busbw_gbytes=20.0)
    best = []
    for name in ("fp32", "bf16"):
        path = trace(tmp_path / name, bucket_mb=96)
        if name == "bf16":
            text = retold(path, BF16).read_text()
            counts = re.compile(r'msg nelems": (\d+)')
            path.write_text(counts.sub(lambda count: f'msg nelems": {2 * int(count[1])}', text))
        assert read_work(path).work.total_bytes == pytest.approx(24 * 8e6)
        found, *_ = verdicts([path], options)
        best.append(float(str(found.measured["best"])))
    assert best[1] == 2 * best[0]


def test_the_advice_is_for_the_framework_of_the_trace(tmp_path: Path) -> None:
    path = retold(trace(tmp_path, bucket_mb=96), MEGATRON)
    verdict, *_ = verdicts([path])
    assert verdict.remedies[0].command.startswith("--ddp-bucket-size")
    analysis = analyse_bucket([path], replace(TOLD, framework="ddp"))
    assert any("is a trace of Megatron, and the advice is for DDP" in n for n in analysis.notes)
    plain = analyse_bucket([trace(tmp_path / "plain", bucket_mb=96)], TOLD)
    assert plain.facts["framework"] == "ddp"


SCATTERED = (
    ("AllReduce_Sum", "ReduceScatter_Sum"),
    ("nccl:all_reduce", "nccl:_reduce_scatter_base"),
    ('"Collective name": "allreduce"', '"Collective name": "_reduce_scatter_base"'),
)


def test_a_reduce_scatter_is_half_of_the_all_reduce_that_the_sweep_measured(tmp_path: Path) -> None:
    """18 ms on the wire under 26 ms of backward: an all-reduce would take 36 and be wire-bound."""
    path = retold(trace(tmp_path, bucket_mb=8), MEGATRON, *SCATTERED)
    analysis = analyse_bucket([path], Given(alpha_us=120.0, busbw_gbytes=10.0))
    (result,) = analysis.results
    assert result.status is Status.PASS
    assert [each.verdict.cause for each in result.findings] == [None]
    path = retold(trace(tmp_path / "slow", bucket_mb=8, busbw=10.0), MEGATRON, *SCATTERED)
    (result,) = analyse_bucket([path], Given(alpha_us=120.0, busbw_gbytes=5.0)).results
    (bound,) = [each.verdict for each in result.findings if each.verdict.cause is WIRE_BOUND]
    assert bound.measured["wire_ms"] == pytest.approx(36.0)


def test_what_a_description_does_not_say_of_elements_the_trace_shows(tmp_path: Path) -> None:
    path = retold(trace(tmp_path, bucket_mb=96), BF16)  # half of the bytes: 96 MB
    sizes = tmp_path / "sizes.json"
    options = replace(TOLD, framework="deepspeed")
    for told in ({"elements": 2_000_000}, {"bytes": 4_000_000}):
        sizes.write_text(json.dumps({"gradients": [{**told, "count": 24}]}))
        best = analyse_bucket([path, sizes], options).facts["best"]
        assert isinstance(best, dict)
        assert best["cap_bytes"] == 2 * best["cap"]


def test_a_zero3_step_is_refused(tmp_path: Path) -> None:
    path = trace(tmp_path, mode="zero3")
    verdict = only(verdicts([path]))
    assert verdict.kind is Kind.UNDECIDABLE


def test_gloo_traces_tell_no_sizes() -> None:
    verdict = only(verdicts([TRACES / "ddp_gloo_cap1_rank0.json.gz"]))
    assert verdict.kind is Kind.UNDECIDABLE
    assert "tells its bytes" in verdict.reason


def test_sizes_of_a_description_are_laid_over_a_trace(tmp_path: Path) -> None:
    path = trace(tmp_path, bucket_mb=48)
    sizes = tmp_path / "sizes.json"
    sizes.write_text(json.dumps({"gradients": [{"elements": 2_000_000, "count": 24}]}))
    traced = read_work(path)
    laid = laid_over(traced.work, [8e6] * 24)
    assert len(laid.sizes) == 24
    assert list(laid.ready_us) == sorted(laid.ready_us)
    assert laid.ready_us[-1] == pytest.approx(traced.work.ready_us[-1])
    exact = read_work(trace(tmp_path / "8", bucket_mb=8))
    ready = [exact.work.ready_us[end - 1] for end in exact.ends]
    assert laid.ready_us == pytest.approx(ready, rel=0.15)
    assert analyse_bucket([path, sizes], TOLD).screen
    with pytest.raises(UsageError, match="of the description"):
        sizes.write_text(json.dumps({"gradients": [{"elements": 9_000, "count": 24}]}))
        analyse_bucket([path, sizes], TOLD)


# --- descriptions -------------------------------------------------------------------------------


def test_a_description_and_the_measured_network(tmp_path: Path) -> None:
    options = Given(alpha_us=300.0, busbw_gbytes=1.0, ranks=2, current=25.0)
    found = verdicts([described(tmp_path)], options)
    assert [each.cause for each in found] == [TOO_LARGE, WIRE_BOUND]
    assert found[0].status is Status.FAIL
    small = verdicts(
        [described(tmp_path, SLEEP_2, 0.6)],
        Given(alpha_us=1000.0, busbw_gbytes=2.0, ranks=2, current=0.25),
    )
    assert small[0].cause is TOO_SMALL


def test_a_default_is_only_supposed_and_warns(tmp_path: Path) -> None:
    options = Given(alpha_us=300.0, busbw_gbytes=1.0, ranks=2)
    verdict, *_ = verdicts([described(tmp_path)], options)
    assert verdict.status is Status.WARN
    assert "bucket_cap_mb=None" in verdict.reason


@pytest.mark.parametrize(
    ("framework", "setting"),
    [("deepspeed", '"reduce_bucket_size"'), ("megatron", "--ddp-bucket-size")],
)
def test_other_units(tmp_path: Path, framework: str, setting: str) -> None:
    options = Given(framework=framework, alpha_us=300.0, busbw_gbytes=1.0, ranks=2)
    verdict, *_ = verdicts([described(tmp_path)], options)
    (remedy,) = verdict.remedies
    assert setting in remedy.command
    assert "{" not in remedy.command


def test_elements_of_a_description_are_as_large_as_the_option_says(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    for key, size, wanted in (("elements", 10_000_000, 40e6), ("bytes", 10_000_000, 20e6)):
        path.write_text(json.dumps({"backward_ms": 9, "gradients": [{key: size, "count": 2}]}))
        analysis = analyse_bucket([path], replace(TOLD, ranks=16, element_bytes=2))
        assert analysis.facts["gradients_bytes"] == wanted
    told = {"backward_ms": 9, "element_bytes": 4, "gradients": [{"elements": 10_000_000}]}
    path.write_text(json.dumps(told))
    assert analyse_bucket([path], replace(TOLD, ranks=16)).facts["gradients_bytes"] == 40e6
    options = replace(TOLD, ranks=16, element_bytes=2, framework="megatron")
    assert analyse_bucket([path], options).facts["gradients_bytes"] == 20e6


def test_where_nothing_is_to_be_set_no_worse_size_is_called_best(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    gradients = [{"elements": 20_000_000, "count": 60}]
    path.write_text(json.dumps({"backward_ms": 900, "element_bytes": 2, "gradients": gradients}))
    options = Given(framework="deepspeed", alpha_us=20.0, busbw_gbytes=100.0, ranks=16)
    screen = analyse_bucket([path], replace(options, current=2e7)).screen
    now, other = (line.split() for line in screen[2:4])
    assert other[:2] == ["as", "good"]
    assert float(other[2]) >= float(now[1])
    assert "set: no change" in screen[4]
    assert any("0.18 GB for buckets of this size" in line for line in screen)
    (best,) = [each for each in analyse_bucket([path], options).screen if " best " in each]
    assert best


def test_without_ready_times_the_backward_is_shared_out() -> None:
    text = json.dumps(
        {"backward_ms": 30, "gradients": [{"bytes": 4, "flops": 1}, {"bytes": 8, "flops": 2}]}
    )
    work = description.read(text, "m.json").work
    assert work is not None
    assert work.sizes == (8, 4)  # the last layer first
    assert work.ready_us == pytest.approx((20_000, 30_000))
    assert any("estimated" in note for note in work.notes)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ('{"gradients": [\n{"bytes": -1}]}', 2, "-1 is no number"),
        ('{"gradients": [\n{"bytes": "4"}]}', 2, "'4' is no number"),
        ('{"gradients": [\n{"name": "a"}]}', 2, "wanted bytes, or elements"),
        ('{"gradients": [\n{"bytes": 4, "elements": 1}]}', 2, "wanted bytes, or elements"),
        ('{"gradients": []}', 1, "wanted a list"),
        ('{\n"backwards_ms": 1, "gradients": [{"bytes": 4}]}', 2, "unknown key"),
        ('{"gradients": [{"bytes": 4},\n {"bytes": 4, "flop": 1}]}', 2, "unknown key"),
        ('{"gradients": [{"bytes": 1, "ready_ms": 2}, {"bytes": 1}]}', 1, "not at all"),
        ('{"gradients": [{"bytes": 1}],\n"gradients": 1}', 2, "stands twice"),
        ('{"gradients": [{"bytes": 1}\n', 2, "no JSON"),
    ],
)
def test_a_wrong_description_is_named_with_its_line(text: str, line: int, what: str) -> None:
    with pytest.raises(UsageError) as refused:
        description.read(text, "m.json")
    assert any(
        problem.startswith(f"m.json:{line}:") and what in problem
        for problem in refused.value.problems
    ), refused.value.problems


# --- DDP's logging data -------------------------------------------------------------------------


def logged(folder: Path, *sizes: int) -> Path:
    path = folder / "ddp.json"
    told = {"backend_name": "nccl", "rebuilt_bucket_sizes": ", ".join(map(str, sizes))}
    path.write_text(json.dumps(told))
    return path


def test_sizes_that_the_trace_does_not_tell_are_those_that_ddp_logged(tmp_path: Path) -> None:
    whole = trace(tmp_path / "whole")
    bare = trace(tmp_path / "bare", coll_args=False)
    sizes = sized(whole)
    told = verdicts([logged(tmp_path, *sizes), bare])
    (want,) = verdicts([whole])
    assert [(each.status, each.cause, each.measured) for each in told] == [
        (want.status, want.cause, want.measured)
    ]
    alone = only(verdicts([bare]))
    assert alone.kind is Kind.UNDECIDABLE
    assert "_get_ddp_logging_data()" in alone.reason
    other = only(verdicts([bare, logged(tmp_path, *sizes[1:])]))
    assert other.kind is Kind.UNDECIDABLE
    assert f"{len(sizes)} all-reduces in a step" in other.reason


def sized(path: Path) -> list[int]:
    """Bytes of each bucket, as the trace tells them."""
    found = read_work(path)
    sums = found.work.sums
    return [round(sums[end] - sums[begin]) for begin, end in pairwise((0, *found.ends))]


@pytest.mark.parametrize("told", ['""', '"a"', "[", '"0"'])
def test_logging_data_without_buckets(tmp_path: Path, told: str) -> None:
    (tmp_path / "ddp.json").write_text(f'{{"bucket_sizes": {told}}}')
    with pytest.raises(UsageError, match=r"ddp\.json: error: no rebuilt_bucket_sizes in it"):
        analyse_bucket([tmp_path / "ddp.json"], TOLD)


# --- what is no input ---------------------------------------------------------------------------


def test_what_is_no_input(tmp_path: Path) -> None:
    odd = tmp_path / "odd.txt"
    odd.write_text("hello\n")
    with pytest.raises(UsageError, match="neither a profiler trace"):
        analyse_bucket([odd])
    with pytest.raises(UsageError, match="cannot be read"):
        analyse_bucket([tmp_path / "none"])
    with pytest.raises(UsageError, match="wanted all_reduce"):
        analyse_bucket([COLLECTIVES / "04_allgather_2node_16xh100_400g_good.txt"])
    with pytest.raises(UsageError, match="no profiler trace"):
        analyse_bucket([GOOD_SWEEP])
    with pytest.raises(UsageError, match="no framework"):
        analyse_bucket([described(tmp_path)], Given(framework="horovod"))
    with pytest.raises(UsageError, match="together"):
        analyse_bucket([described(tmp_path)], Given(alpha_us=3.0))
    with pytest.raises(UsageError, match="number of ranks"):
        analyse_bucket([described(tmp_path)], Given(alpha_us=3.0, busbw_gbytes=1.0))
    assert only(verdicts([described(tmp_path)], Given())).kind is Kind.UNDECIDABLE


# --- the network --------------------------------------------------------------------------------


def test_a_table_is_read_between_its_points() -> None:
    points = [(size, time) for size, time in recorded(GLOO)["allreduce_sweep_us"]]
    table = link.of_table(points, "gloo")
    for size, time in points:
        assert table.time_us(size) >= time * 0.999  # noise is smoothed upwards
    assert table.time_us(1) == table.time_us(points[0][0])
    last = points[-1][0]
    assert table.time_us(2 * last) > table.time_us(last)
    assert table.beta_gbytes == pytest.approx(0.9, rel=0.2)


@given(
    st.lists(st.tuples(st.integers(1, 10**9), st.floats(1, 1e6)), min_size=2, max_size=20),
    st.integers(1, 10**9),
    st.integers(1, 10**9),
)
@settings(max_examples=50)
def test_a_larger_message_never_takes_less(
    points: list[tuple[int, float]], one: int, other: int
) -> None:
    if len({size for size, _ in points}) < 2:
        with pytest.raises(ValueError, match="two different"):
            link.of_table(points, "t")
        return
    table: Link = link.of_table(points, "t")
    less, more = sorted((one, other))
    assert table.time_us(less) <= table.time_us(more) * (1 + 1e-9)
    assert table.scaled(2, 0.8).time_us(more) >= table.time_us(more) * (1 - 1e-9)


@pytest.mark.parametrize("path", sorted(COLLECTIVES.glob("*.*")), ids=lambda path: path.stem)
def test_every_output_of_a_benchmark_is_a_network_or_refused(path: Path, tmp_path: Path) -> None:
    options = Given(ranks=16)
    try:
        analysis = analyse_bucket([described(tmp_path), path], options)
    except UsageError as error:
        assert len(error.problems) == 1
        assert str(path) in error.problems[0]
        return
    assert path.name in analysis.screen[1]


def test_of_several_ranks_the_slowest_counts(tmp_path: Path) -> None:
    paths, _ = made(tmp_path, **{**JOB, "ranks": 2, "straggler": 1, "straggler_factor": 1.4})
    analysis = analyse_bucket(paths, TOLD)
    assert any("of 2 ranks trace_rank1.json" in note for note in analysis.notes)
