# ruff: noqa: E501 - a line of a log is not broken
"""Every recording yields its facts and its verdict, also behind other prefixes and cut anywhere."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import time
from pathlib import Path

import pytest

from commcheck.errors import ParseError
from commcheck.jobs import perftest, rdma, simulate, sweep
from commcheck.jobs.bound import Fabric
from commcheck.jobs.failures import failure_on
from commcheck.jobs.lines import Line, lines_of
from commcheck.jobs.offline import Told, read_runs
from commcheck.jobs.perftest import Perftest
from commcheck.jobs.proof import Asked, meaning
from commcheck.jobs.reading import Sweep
from commcheck.model import Kind, Status, Verdict
from tests.jobs.recordings import FAILURES, GPU, RECORDED, SWEEPS, cases_of, text_of


def run_of(text: str, told: Told) -> Sweep:
    (run,) = read_runs(text, told)
    assert isinstance(run, Sweep)
    return run


def judged(run: Sweep, told: Told) -> tuple[Verdict, ...]:
    fabric = Fabric(
        nic_gbits=told.nic_gbits, rails=told.rails, reference_gbytes=told.reference_gbytes
    )
    return sweep.judge(run, fabric, Asked(host_count=told.hosts))


@pytest.mark.parametrize("name", SWEEPS)
def test_facts(name: str) -> None:
    want = SWEEPS[name]
    run = run_of(text_of(name), want.told)
    assert run.state == want.state
    assert run.nranks == want.ranks
    assert run.hosts == want.hosts or run.state == "not_multi_rank"
    assert run.collective == want.collective
    assert len(run.rows) == want.rows
    assert run.out_of_bounds == want.bounds
    assert run.version == want.version
    assert run.avg_busbw == (
        None if want.average is None else pytest.approx(want.average, abs=1e-3)
    )
    assert run.peak == (None if want.peak is None else pytest.approx(want.peak, abs=0.011))
    assert run.problems == ()
    for row, times in ((0, want.first), (-1, want.last)):
        if times is not None:
            seen = [half.time_us for half in run.rows[row].halves]
            assert seen == pytest.approx(times, rel=1e-4)
    for fact, value in want.facts.items():
        assert getattr(run, fact) == value


@pytest.mark.parametrize("name", SWEEPS)
def test_verdict(name: str) -> None:
    want = SWEEPS[name]
    main, *beside = judged(run_of(text_of(name), want.told), want.told)
    assert main.status == want.verdict, main.reason
    assert (main.cause.slug if main.cause else "") == want.cause
    assert [each.cause.slug for each in beside if each.cause] == list(want.also)
    assert "\n" not in main.reason
    for part in want.says:
        assert part in main.reason
    if main.status in (Status.PASS, Status.FAIL, Status.WARN):
        (figure,) = main.figures
        assert figure.form == "curve"
        assert json.dumps(figure.data)
        assert main.measured["busbw_gbytes"]


@pytest.mark.parametrize(
    ("name", "part"), [(name, part) for name, parts in FAILURES.items() for part in parts]
)
def test_failures_are_named(name: str, part: str) -> None:
    slug, host, detail = FAILURES[name][part]
    (run,) = read_runs(cases_of(name)[part], GPU)
    first = next(each for each in run.failures if not each.consequence)
    assert (first.slug, first.host) == (slug, host)
    assert detail.items() <= dict(first.detail).items()
    assert run.state == "launch_failed"
    verdict = rdma.judge(run, 400) if isinstance(run, Perftest) else judged(run, GPU)[0]
    busy = slug == "cuda-out-of-memory"
    assert verdict.status is (Status.SKIP if busy else Status.ERROR)
    assert verdict.kind is (Kind.BUSY if busy else Kind.CHECK)


def test_a_warning_about_clocks_is_no_failure() -> None:
    text = cases_of("54_perftest_failures.txt")["cpu_freq_noise"]
    with pytest.raises(ParseError):
        perftest.parse(text)
    assert perftest.parse(text + text_of("50_ib_write_bw_400g_good_gbits.txt")).state == "complete"


@pytest.mark.parametrize(
    ("name", "line", "gbits", "status", "cause"),
    [
        ("50_ib_write_bw_400g_good_gbits.txt", 400, 391.94, "pass", ""),
        ("51_ib_write_bw_200g_gdr_old_units.txt", 200, 196.38, "pass", ""),
        ("51_ib_write_bw_200g_gdr_old_units.txt", None, 196.38, "skip", ""),
        ("52_ib_write_bw_pcie_limited.txt", 400, 210.88, "fail", "rdma-pair-pcie-limited"),
        ("53_ib_write_bw_all_sizes.txt", 400, 391.83, "pass", ""),
        ("56_ib_write_bw_duration.txt", 400, 392.03, "pass", ""),
        ("57_ib_write_bw_post_list.txt", 400, 391.72, "pass", ""),
        ("58_ib_write_bw_all_sizes_falls.txt", 400, 96.41, "fail", "rdma-pair-falls"),
    ],
)
def test_perftest(name: str, line: float | None, gbits: float, status: str, cause: str) -> None:
    run = perftest.parse(text_of(name))
    assert run.at_least(0)[-1].average_gbits == pytest.approx(gbits, abs=0.01)
    assert (run.mtu, run.gid_index, run.link_type) == (4096, 3, "Ethernet")
    verdict = rdma.judge(run, line)
    assert verdict.status == status, verdict.reason
    assert (verdict.cause.slug if verdict.cause else "") == cause


LEVEL = {16: 391.0, 64: 391.0, 1024: 391.0, 8192: 391.0}


@pytest.mark.parametrize(
    ("rates", "status", "says"),
    [
        (LEVEL, "pass", "391.0 Gb/s at 8 MiB"),
        ({**LEVEL, 1024: 284.0}, "pass", "at 8 MiB"),  # one QP may dip there
        ({**LEVEL, 8192: 360.0}, "warn", "it reached 391.0 Gb/s at 64 KiB before"),
        ({**LEVEL, 16: 395.0, 8192: 120.0}, "fail", "it reached 391.0 Gb/s at 64 KiB before"),
        ({16: 391.0}, "skip", "64 KiB and more"),
        ({8192: 397.5}, "pass", "101% of 392"),  # InfiniBand's headers are smaller
        ({8192: 784.0}, "skip", "more than the line carries"),
    ],
)
def test_all_sizes_are_judged_at_the_largest(
    rates: dict[int, float], status: str, says: str
) -> None:
    rows = [simulate.rate_of(kib << 10, gbits) for kib, gbits in rates.items()]
    text = simulate.print_write_bw(rows, device="mlx5_0", mtu=4096, link_type="Ethernet")
    verdict = rdma.judge(perftest.parse(text), 400)
    assert verdict.status == status
    assert says in verdict.reason


def test_rows_that_contradict_themselves_are_not_called_cut() -> None:
    text = text_of("56_ib_write_bw_duration.txt").replace("0.747738", "0.547738")
    assert rdma.judge(perftest.parse(text), 400).error == "SelfCheck"


def test_latency() -> None:
    run = perftest.parse(text_of("55_ib_write_lat_good.txt"))
    (delay,) = run.delays
    assert (delay.typical_us, delay.average_us, delay.p99_us) == (1.66, 1.67, 1.79)
    assert rdma.judge(run, 400).status is Status.PASS


def test_every_recording_is_named() -> None:
    numbers = ("50", "51", "52", "56", "57", "58")
    perftests = {path.name for path in RECORDED.iterdir() if path.name[:2] in numbers}
    others = {"SOURCES.md", "53_ib_write_bw_all_sizes.txt", "55_ib_write_lat_good.txt"}
    found = {path.name for path in RECORDED.iterdir()}
    assert found == set(SWEEPS) | set(FAILURES) | perftests | others
    sources = (RECORDED / "SOURCES.md").read_text()
    assert all(f"`{name}`" in sources for name in found - {"SOURCES.md"})


# --- the same output, as other launchers hand it on ---------------------------------------------

PREFIXES = (
    "[1,0]<stdout>:",
    "[prterun-head-41@1,0]<stdout>: ",
    "Thu Jul 18 15:41:05 2024[1,0]<stdout>:",
    "Thu Jul 18 15:41:05 2024<stdout>:",
    " 0: ",
    "[0] ",
    "[default0]:",
    "2026-03-04T09:12:31.123456789Z ",
    "[pod/sweep-launcher-x7/mpi] ",
    "2026-03-04T09:12:31.123456789Z [1,0]<stdout>:",
    "\x1b[32m",
    # Of what no launcher is known: times, hosts, containers, pastes.
    "2026-03-04 09:12:31,123 INFO ",
    "trainer-1  | ",
    "gpu-a01: ",
    "2026-03-04T09:12:31Z\t",
    "2026-03-04T09:12:31.123456789+00:00 stdout F ",
    "[1,mpirank:0,algo-1]<stdout>:",
    "logs/sweep.log:",
    "(main pid=581, ip=192.0.2.7) ",
    "> ",
    "    ",
)
PREFIXED = (
    "01_allreduce_1node_8xh100_good.txt",
    "08_allreduce_2node_crash_mid_table.txt",
    "09_allreduce_2node_nccl_info_interleaved.txt",
    "22_allreduce_v1_0_layout_ms.txt",
    "34_hccl_allreduce_check_failed.txt",
)


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", PREFIXED)
def test_prefixes_change_nothing(name: str, prefix: str) -> None:
    told = SWEEPS[name].told
    plain = run_of(text_of(name), told)
    text = "".join(f"{prefix}{line}\r\n" for line in text_of(name).splitlines())
    run = run_of(text, told)
    assert (run.state, run.rows, run.hosts) == (plain.state, plain.rows, plain.hosts)
    assert run.problems == ()
    assert len(run.log) == len(plain.log)


def test_a_prefix_whose_numbers_change_is_one_prefix() -> None:
    name = "02_allreduce_2node_16xh100_400g_ring_good.txt"
    lines = text_of(name).splitlines()
    for form in ("2026-03-04 09:12:{0:02} ", "/tmp/out.log:{0}:"):
        text = "".join(f"{form.format(at % 60)}{line}\n" for at, line in enumerate(lines, 1))
        assert run_of(text, GPU).rows == run_of(text_of(name), GPU).rows
    docker = "".join(json.dumps({"log": f"{line}\n", "stream": "stdout"}) + "\n" for line in lines)
    assert run_of(docker, GPU).rows == run_of(text_of(name), GPU).rows


HEAD = "gpu-a02:42824:42901 [3] {} NCCL WARN "
STAMPED = f"[2026-04-22 21:34:20] {HEAD}"
WARNINGS = {
    f"{HEAD}NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129": "ib-retry-exceeded",
    f"{STAMPED}NET/IB: Got completion from peer 192.0.2.11<4000> with status=12 opcode=0 len=0 vendor err 129 (Send) hca mlx5_3": "ib-retry-exceeded",
    f"{STAMPED}NET/IB: Got completion from peer 192.0.2.11<4000> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) reqSize=0 vendor_err=129 req_type=Send hca mlx5_3": "ib-retry-exceeded",
    f"{STAMPED}NET/IB: Got completion from peer 192.0.2.11<4000> with status=IBV_WC_LOC_PROT_ERR(4) opcode=IBV_WC_SEND(0) vendor_err=81 hca mlx5_3": "ib-completion-error",
    f"{STAMPED}socketPollConnect: connect to 192.0.2.9<4000> returned Connection refused, exceeded error retry count after 35 attempts": "bootstrap-connect",
    f"{STAMPED}Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_3:1, curr state INIT": "nccl-modify-qp",
    f"{STAMPED}Call to ibv_reg_mr failed with error Cannot allocate memory": "nccl-verbs-memory",
    f"{STAMPED}Error: failed to extend /dev/shm/nccl-WQ7rVl to 33030532 bytes, error: No space left on device (28)": "nccl-shm-size",
    f"{STAMPED}NET/IB : mlx5_3:1 async fatal event on QP (0x7f): local access violation work queue error": "nccl-async",
}


@pytest.mark.parametrize("warning", WARNINGS)
def test_the_warning_before_a_crash_is_what_is_told(warning: str) -> None:
    """Since 2.26 a warning bears a time; its words moved in 2.18, 2.20, 2.22, 2.24 and 2.28."""
    name = "02_allreduce_2node_16xh100_400g_ring_good.txt"
    begun = text_of(name).splitlines(keepends=True)[:28]
    ended = "gpu-a02: Test NCCL failure common.cu:303 'remote process exited / '\n"
    run = run_of("".join(begun) + f"\n{warning.format('net_ib.cc:12')}\n{ended}", GPU)
    first = run.first_failure
    assert first is not None
    assert (run.state, first.slug, first.host) == ("crashed", WARNINGS[warning], "gpu-a02")


LAUNCHERS = {
    "srun: error: gpu-a02: task 11: Out Of Memory": (
        "host-out-of-memory",
        "gpu-a02",
        "crashed",
        "cgroup",
    ),
    "slurmstepd: error: Detected 1 oom_kill event in StepId=123.0. Some of the step tasks have been OOM Killed.": (
        "host-out-of-memory",
        None,
        "crashed",
        "cgroup",
    ),
    "srun: error: gpu-a02: tasks 8-15: Killed": (
        "killed-by-signal",
        "gpu-a02",
        "crashed",
        "from outside",
    ),
    "srun: error: gpu-a02: task 11: Bus error (core dumped)": (
        "killed-by-signal",
        "gpu-a02",
        "crashed",
        "/dev/shm",
    ),
    "[gpu-a02:42824] Signal: Bus error (7)": ("killed-by-signal", "gpu-a02", "crashed", "/dev/shm"),
    "mpirun noticed that process rank 11 with PID 42824 on node gpu-a02 exited on signal 9 (Killed).": (
        "killed-by-signal",
        "gpu-a02",
        "crashed",
        "from outside",
    ),
    "srun: error: Node failure on gpu-a02": ("daemon-lost", "gpu-a02", "crashed", "lost a host"),
    "slurmstepd: error: *** STEP 123.0 ON gpu-a01 CANCELLED AT 2026-03-04T09:12:31 DUE TO TIME LIMIT ***": (
        "launcher-timeout",
        None,
        "timeout",
        "",
    ),
    "srun: error: gpu-a02: task 11: Exited with exit code 1": (
        "exit-status",
        "gpu-a02",
        "crashed",
        "",
    ),
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 42824 RUNNING AT gpu-a02\n=   EXIT CODE: 9": (
        "hydra-terminated",
        "gpu-a02",
        "crashed",
        "",
    ),
    "./all_reduce_perf: symbol lookup error: ./all_reduce_perf: undefined symbol: ncclCommWindowRegister": (
        "library-mismatch",
        None,
        "crashed",
        "built for other libraries",
    ),
    "./all_reduce_perf: /lib/libc.so.6: version `GLIBC_2.34' not found (required by ./all_reduce_perf)": (
        "library-mismatch",
        None,
        "crashed",
        "built for other libraries",
    ),
}


@pytest.mark.parametrize("said", LAUNCHERS)
def test_what_a_launcher_says_of_a_run_that_broke(said: str) -> None:
    name = "02_allreduce_2node_16xh100_400g_ring_good.txt"
    begun = "".join(text_of(name).splitlines(keepends=True)[:28])
    run = run_of(f"{begun}{said}\n", GPU)
    slug, host, state, means = LAUNCHERS[said]
    first = run.first_failure
    assert first is not None
    assert (first.slug, first.host, run.state) == (slug, host, state)
    assert means in meaning(first)


def test_what_nccl_goes_on_after_is_no_crash() -> None:
    name = "02_allreduce_2node_16xh100_400g_ring_good.txt"
    warnings = (
        "NET/IB : mlx5_3:1 Got async error event: port error",
        "NET/IB : mlx5_3:1 Got async error event: port active",
        "Failed to open libibverbs.so[.1]",
    )
    for warning in warnings:
        run = run_of(f"{STAMPED.format('net_ib.cc:1')}{warning}\n{text_of(name)}", GPU)
        assert run.state == "complete"
    port, *others = (
        run_of(f"{STAMPED.format('a.cc:1')}{w}\n{text_of(name)}", GPU) for w in warnings
    )
    assert [failure.slug for failure in port.failures] == ["nccl-async"]
    assert all(run.failures == () for run in others)


GLUED = (
    "gpu-a01:41021:41077 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] via NET/IB/0/GDRDMA\n",
    "10-0-0-5:41021:41077 [0] NCCL INFO Connected all trees\n",
    "\ngpu-a02:1:2 [3] transport/net_ib.cc:2310 NCCL WARN NET/IB : Got async event\n",
    "\n[2026-03-04 09:12:31] gpu-a02:1:2 [3] NCCL WARN slow\n",
)


@pytest.mark.parametrize("glued", GLUED)
@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_row_split_by_nccl_is_whole_again(glued: str, at: int) -> None:
    """A row is written in three pieces, and a line may come before, between and after them."""
    name = "02_allreduce_2node_16xh100_400g_ring_good.txt"
    text = "".join(
        _cut(line, (0, 5, 9, 13)[at], glued) if line.lstrip()[:1].isdigit() else line
        for line in text_of(name).splitlines(keepends=True)
    )
    run = run_of(text, GPU)
    assert run.rows == run_of(text_of(name), GPU).rows
    assert len(run.log) == 11 + 1


def _cut(line: str, fields: int, glued: str) -> str:
    ends = [0, *(match.end() for match in re.finditer(r"\S+", line))]
    return line[: ends[fields]] + glued + line[ends[fields] :]


def test_rows_of_all_collectives_at_once_are_two_runs() -> None:
    names = ("02_allreduce_2node_16xh100_400g_ring_good.txt", "14_alltoall_2node_good.txt")
    runs = read_runs("".join(map(text_of, names)), GPU)
    assert [run.collective for run in runs if isinstance(run, Sweep)] == ["all_reduce", "alltoall"]


def test_two_single_host_tables_in_one_stream_prove_no_network() -> None:
    """Built without MPI, one process a host with eight GPUs each: 480 GB/s, and nothing sent."""
    lines = text_of("01_allreduce_1node_8xh100_good.txt").splitlines(keepends=True)
    other = [line.replace("gpu-a01", "gpu-a02") for line in lines]
    mixed = [line for pair in zip(lines, other, strict=True) for line in pair]
    run = run_of("".join(mixed), GPU)
    assert (run.state, run.tables, run.rows) == ("not_multi_rank", 2, ())
    assert judged(run, GPU)[0].status is Status.ERROR


def test_secrets_of_the_environment_are_not_kept() -> None:
    run = run_of(text_of("10_allreduce_2node_v1.json"), GPU)
    assert set(run.env) == {"NCCL_DEBUG", "NCCL_IB_HCA", "NCCL_IB_GID_INDEX"}
    assert "REDACT-ME" not in repr(run)


def test_a_killed_json_keeps_its_whole_results() -> None:
    text = text_of("10_allreduce_2node_v1.json")
    end = text.index('"size":1073741824') + 40
    run = run_of(text[:end], GPU)
    assert (run.state, len(run.rows)) == ("truncated", 4)
    assert judged(run, GPU)[0].error == "RunTruncated"


# --- damage -------------------------------------------------------------------------------------

TABLES = [
    name
    for name in SWEEPS
    if SWEEPS[name].rows and not name.startswith("24_") and not name.endswith(".json")
]


def same(one: float, other: float) -> bool:
    """Equal within what the columns' rounding can hide."""
    return abs(one - other) <= 0.03 + 0.03 * other


@pytest.mark.parametrize("name", TABLES)
def test_a_cut_or_damaged_line_never_gives_a_wrong_row(name: str) -> None:
    told = SWEEPS[name].told
    text = text_of(name)
    right = {row.size: row for row in run_of(text, told).rows}
    lines = text.splitlines(keepends=True)
    rows = [at for at, line in enumerate(lines) if line.strip()[:1].isdigit()]
    chance = random.Random(name)
    for _ in range(25):
        at = chance.choice(rows)
        body = lines[at].rstrip("\n")
        spot = chance.randrange(len(body))
        by = chance.choice(["", "", " ", "9", "\n", "7", "x", ".", body])
        damaged = body[:spot] + by + body[spot + chance.choice([0, 1]) :]
        if chance.random() < 0.3:
            damaged = body[:spot]
        texts = "".join([*lines[:at], damaged + "\n", *lines[at + 1 :]])
        try:
            run = run_of(texts, told)
        except ParseError:
            continue
        for row in run.rows:
            # A row that is taken has the right size, and numbers within the columns' rounding.
            assert row.size in right, (damaged, row)
            for mine, whole in zip(row.halves, right[row.size].halves, strict=True):
                assert same(mine.busbw, whole.busbw), damaged


@pytest.mark.parametrize("name", TABLES)
def test_a_cut_file_is_never_complete_and_never_passes(name: str) -> None:
    want = SWEEPS[name]
    text = text_of(name)
    end = max(text.rfind("Avg bus"), text.rstrip().rfind("\n") if name[0] == "3" else 0, 1)
    chance = random.Random(name)
    for _ in range(6):
        try:
            run = run_of(text[: chance.randrange(end)], want.told)
        except ParseError:
            continue
        assert run.state not in ("complete", "complete_then_crashed")
        assert judged(run, want.told)[0].status is Status.ERROR


@pytest.mark.parametrize("name", [n for n in TABLES if SWEEPS[n].state == "complete"])
def test_a_missing_row_is_found_out(name: str) -> None:
    told = SWEEPS[name].told
    lines = text_of(name).splitlines(keepends=True)
    rows = [at for at, line in enumerate(lines) if line.strip()[:1].isdigit()]
    for at in rows[:: max(len(rows) // 4, 1)]:
        text = "".join([*lines[:at], *lines[at + 1 :]])
        if name[:2] == "09":
            continue
        run = run_of(text, told)
        assert run.problems or run.state == "truncated", lines[at]
        assert judged(run, told)[0].status is Status.ERROR


def test_any_text_is_read_or_refused() -> None:
    chance = random.Random(7)
    alphabet = "# 0123456789.|-\n\t:[]<>abcNCL{}\"',sum float size busbw time"
    for _ in range(150):
        text = "".join(chance.choice(alphabet) for _ in range(chance.randrange(200)))
        try:
            read_runs(text, GPU)
        except ParseError as error:
            assert error.reason


SAMPLES = Path(os.environ.get("COMMCHECK_SAMPLES", "/nowhere")) / "collectives"


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="COMMCHECK_SAMPLES names no folder with samples")
def test_samples_yield_what_is_expected_of_them() -> None:
    expected = json.loads((SAMPLES / "expected.json").read_text())
    for name, want in expected.items():
        if "rows" not in want or want.get("tool") == "perftest":
            continue
        hosts = want.get("hosts")
        told = Told(
            collective=want.get("collective") if want["tool"] == "hccl_test" else None,
            nranks=want.get("nranks") if want["tool"] == "hccl_test" else None,
        )
        run = run_of((SAMPLES / name).read_text(), told)
        assert (len(run.rows), run.state) == (want["rows"], want["status"]), name
        for key, value in (("nranks", run.nranks), ("collective", run.collective)):
            if key in want:
                assert value == want[key], (name, key)
        if isinstance(hosts, list) and run.ranks:
            assert list(run.hosts) == hosts, name
        if isinstance(want.get("last"), dict):
            halves = run.rows[-1].halves
            for key, seen in (
                ("time_us", [half.time_us for half in halves]),
                ("algbw", [half.algbw for half in halves]),
                ("busbw", [half.busbw for half in halves]),
            ):
                assert seen == pytest.approx(want["last"][key], rel=1e-4, abs=0.006), (name, key)


@pytest.mark.parametrize("letter", ["[", "a", "a.", '{"a":', "1", " "])
def test_a_word_without_an_end_costs_linear_time(letter: str) -> None:
    timings = []
    for count in (2_000, 20_000):
        began = time.process_time()
        failure_on(Line(1, letter * count))
        timings.append(time.process_time() - began)
    assert timings[1] < 30 * timings[0] + 0.2


def test_a_record_of_a_container_may_hold_several_lines() -> None:
    """Also where another prefix comes off, and with a carriage return in it."""
    record = json.dumps({"log": "one\r\ntwo\n", "stream": "stdout"})
    told = lines_of(f"{record}\npre | # nThread 1 nGpus 8\npre | # Using devices\nlast\n")
    assert [(line.number, line.text) for line in told] == [
        (1, "one"), (1, "two"), (2, "# nThread 1 nGpus 8"), (3, "# Using devices"), (4, "last"),
        (5, ""),
    ]  # fmt: skip


@pytest.mark.parametrize("number", ["9" * 400, "9" * 5000, "inf", "1e999", "nan"])
@pytest.mark.parametrize("name", SWEEPS)
def test_no_number_is_too_large(name: str, number: str) -> None:
    """Of a table that a line broke into, or of somebody who wants to see us fall."""
    text = text_of(name)
    chance = random.Random(number + name)
    rows = [found for found in re.finditer(r"^ +\d.*$", text, re.M) if len(found[0].split()) > 4]
    for row in chance.sample(rows, min(2, len(rows))):
        for field in re.finditer(r"[\d.]+", row[0]):
            at = row.start() + field.start()
            broken = text[:at] + number + text[at + len(field[0]) :]
            with contextlib.suppress(ParseError):
                read_runs(broken, Told())
