"""The training step: what is started, the script on its own, what it prints, how that is judged."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.errors import ParseError, Unjudgeable
from commcheck.jobs.job import Answered, Member, Ran
from commcheck.jobs.outcomes import Run
from commcheck.jobs.step.job import fleet_job, step_job
from commcheck.jobs.step.limits import FleetLimits, StepLimits
from commcheck.jobs.step.reading import facts_of, parse, without_traces
from commcheck.model import Kind, Status
from commcheck.trace.causes import NOT_OVERLAPPED, STRAGGLER
from tests.chaos.conftest import small_disk
from tests.jobs.steps import RAN, member, output, printed
from tests.trace.expected import made

__all__ = ["small_disk"]

JOB = step_job()
RUN = Run(("gpu-01",))
LIMITS = StepLimits()
SMALL = {"layers": 4, "kernels": 3, "steps": 3, "ranks": 2}


def words(one: Member, limits: StepLimits = LIMITS) -> tuple[str, ...]:
    (part,) = JOB.launch(RUN, {one.name: one}, limits)
    (request,) = part.requests
    return request.command.argv


def read(answered: Answered, one: Member | None = None) -> Ran:
    one = one or member()
    return JOB.read(RUN, {one.name: one}, LIMITS, answered)


def brought(text: str, stderr: str = "", rc: int = 0) -> Ran:
    return read(Answered(outputs=(output(text, stderr, rc),)))


# --- what is started ----------------------------------------------------------------------------


def test_one_rank_for_each_accelerator_with_the_environment_of_the_jobs() -> None:
    argv = words(member(commcheck_job_env={"NCCL_IB_HCA": "mlx5"}))
    assert argv[:2] == ("python3", "-c")
    options = json.loads(argv[-1])
    assert (options["ranks"], options["device"], options["sharding"]) == (8, "cuda", "ddp")
    assert options["env"] == {"NCCL_IB_HCA": "mlx5"}
    assert options["limit_s"] < LIMITS.run_limit_s
    assert json.loads(words(member("ascend"))[-1])["device"] == "npu"
    assert not any("\n" in word for word in argv)
    assert max(map(len, argv)) < 100_000  # Linux takes no longer word than 128 KiB


def test_python_is_found_where_the_inventory_says() -> None:
    one = member(
        commcheck_train_python="/opt/train/bin/python",
        commcheck_train_environment=["docker", "exec", "-e", "COMMCHECK_MARK", "trainer"],
    )
    assert words(one)[:7] == (
        *("docker", "exec", "-e", "COMMCHECK_MARK", "trainer"),
        *("/opt/train/bin/python", "-c"),
    )
    (part,) = JOB.launch(RUN, {one.name: one}, LIMITS)
    assert str(part.requests[0].command).endswith("/opt/train/bin/python train_step.py ddp 5")


@pytest.mark.parametrize("python", ["-c", "python3; reboot", "a b", "", 3, "/opt//../x y"])
def test_no_other_words_are_taken_for_a_python(python: object) -> None:
    with pytest.raises(ValueError, match="wanted an absolute path"):
        words(member(commcheck_train_python=python))


@pytest.mark.parametrize(
    ("one", "limits", "why"),
    [
        (member(), replace(LIMITS, sharding="tp"), "none of ddp, fsdp"),
        (member(), replace(LIMITS, device="tpu"), "none of auto"),
        (member(gpus=0), LIMITS, "no accelerator to train on"),
    ],
)
def test_what_cannot_be_started_is_told(one: Member, limits: StepLimits, why: str) -> None:
    with pytest.raises(Unjudgeable, match=why):
        words(one, limits)


def test_the_sites_own_training_is_started_where_the_inventory_names_it() -> None:
    one = member(
        commcheck_train_command=["torchrun", "--nproc-per-node", "8", "train.py"],
        commcheck_train_folder="/srv/run",
    )
    options = json.loads(words(one)[-1])
    assert options["command"] == ["torchrun", "--nproc-per-node", "8", "train.py"]
    assert (options["folder"], options["skip"]) == ("/srv/run", 10)
    (part,) = JOB.launch(RUN, {one.name: one}, LIMITS)
    assert str(part.requests[0].command).endswith(
        "train_step.py torchrun --nproc-per-node 8 train.py 5"
    )
    with pytest.raises(ValueError, match="wanted plain words"):
        words(member(commcheck_train_command=["sh", "-c", "rm; reboot"]))


# --- over several hosts -------------------------------------------------------------------------

FLEET = fleet_job()
BOTH = Run(("gpu-01", "gpu-02"))
TWO = {
    name: member(name=name, commcheck_mpi_interface="bond0", commcheck_job_env={"A": "1"})
    for name in BOTH.hosts
}


def test_all_hosts_are_one_training_and_meet_at_the_first() -> None:
    assert FLEET.steps(tuple(TWO.values()), FleetLimits())([]) == (BOTH,)
    parts = FLEET.launch(BOTH, TWO, FleetLimits(port=29999))
    assert [part.host for part in parts] == ["gpu-01", "gpu-02"]
    options = [json.loads(part.requests[0].command.argv[-1]) for part in parts]
    assert [each["place"] for each in options] == [
        {"nodes": 2, "node": node, "master": "gpu-01", "port": 29999} for node in (0, 1)
    ]
    wanted = {f"{name}_SOCKET_IFNAME": "bond0" for name in ("NCCL", "GLOO", "HCCL")}
    assert options[0]["env"] == {**wanted, "A": "1"}
    alone = json.loads(words(TWO["gpu-01"])[-1])
    assert alone["place"] == {"nodes": 1, "node": 0, "master": "127.0.0.1", "port": 0}
    assert alone["env"] == {"A": "1"}


def test_hosts_of_different_sizes_are_no_one_training() -> None:
    uneven = {**TWO, "gpu-02": member(gpus=4, name="gpu-02")}
    with pytest.raises(Unjudgeable, match=r"not all as many accelerators: \[4, 8\]"):
        FLEET.launch(BOTH, uneven, FleetLimits())


def of_both(problem: str = "", **said: str) -> Ran:
    outputs = {name.replace("_", "-"): (output(text),) for name, text in said.items()}
    answered = Answered(outputs.get("gpu-01", ()), problem, by_host=outputs)
    return FLEET.read(BOTH, TWO, FleetLimits(), answered)


def test_a_late_rank_is_its_hosts(tmp_path: Path) -> None:
    late, _ = made(tmp_path, **{**SMALL, "ranks": 4, "straggler": 2, "straggler_factor": 3.0})
    head = printed(late[:2], {**RAN, "ranks": 4})
    ran = of_both(gpu_01=head, gpu_02=printed(late[2:], first=2))
    assert ran.verdicts[0].cause is STRAGGLER
    assert ran.verdicts[0].hosts == ("gpu-02",)
    assert ran.verdicts[0].reason.startswith("DDP step of 4 ranks on NVIDIA H100")


def test_the_host_that_lacks_something_is_named_and_not_those_that_waited(tmp_path: Path) -> None:
    lacks = 'problem {"missing": "torch", "python": "/usr/bin/python3"}\n'
    ran = of_both("the run on gpu-01 and gpu-02 was lost", gpu_02=lacks)
    assert ran.verdicts[0].kind is Kind.UNDECIDABLE
    assert "nothing to train with on gpu-02" in ran.verdicts[0].reason
    ran = of_both("the run on gpu-01 and gpu-02 was lost: ssh")
    assert ran.verdicts[0].error == "LaunchFailed"
    some, _ = made(tmp_path, **SMALL)
    ran = of_both(gpu_01=printed(some, {**RAN, "ranks": 4}), gpu_02="")
    assert ran.verdicts[0].error == "LaunchFailed"
    ran = of_both(gpu_01=printed(some[:1], {**RAN, "ranks": 3}), gpu_02=printed(some[1:], first=1))
    assert ran.verdicts[0].error == "TraceMissing"


# --- the script on its own ----------------------------------------------------------------------


def script(
    folder: Path, torchrun: str, disk: Path | None = None, **options: object
) -> subprocess.Popen[str]:
    """The script, started as on a host, with a torchrun of the test's. It may put no folder
    elsewhere than into ``disk``, or ``folder / "tmp"``."""
    package = folder / "torch" / "distributed"
    package.mkdir(parents=True)
    for place in (package.parent, package):
        (place / "__init__.py").touch()
    (package / "run.py").write_text(torchrun)
    (folder / "tmp").mkdir()
    argv = list(words(member()))
    given = {**json.loads(argv[-1]), **options}
    env = {**os.environ, "PYTHONPATH": str(folder), "TMPDIR": str(disk or folder / "tmp")}
    return subprocess.Popen(
        [sys.executable, "-S", *argv[1:-1], json.dumps(given)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )


def left(folder: Path) -> list[str]:
    return [each.name for each in (folder / "tmp").iterdir()]


def test_without_torch_it_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    argv = words(member())
    ran = subprocess.run(
        [sys.executable, "-S", *argv[1:]], capture_output=True, text=True, check=False
    )
    told = parse(output(ran.stdout))
    assert told.missing == "torch"
    (verdict,) = brought(ran.stdout, rc=ran.returncode).verdicts
    assert verdict.kind is Kind.UNDECIDABLE
    assert "commcheck_train_python" in verdict.reason


TRACES = """
import pathlib, sys
folder = pathlib.Path(sys.argv[-2]).parent
(folder / "rank0.told").write_text("step {}")
(folder / "rank0.json.gz").write_bytes(bytes(range(256)) * 40)
(folder / "rank1.json.gz").write_bytes(bytes(20000))
"""


def test_traces_come_back_whole_within_their_cap(tmp_path: Path) -> None:
    child = script(tmp_path, TRACES, most_bytes=12_000)
    said, wrong = child.communicate(timeout=30)
    assert wrong == ""
    assert left(tmp_path) == []
    told = parse(output(said.replace("step {}", f"step {json.dumps({**RAN, 'ranks': 2})}\n")))
    assert told.traces == {0: bytes(range(256)) * 40}
    assert told.left_out == {1: 20000}


SLEEPS = """
import pathlib, subprocess, sys, time
words = [sys.executable, "-S", "-c", "import time; time.sleep(60)", sys.argv[-2]]
subprocess.Popen(words, start_new_session=True)  # as torchrun starts its ranks
pathlib.Path(sys.argv[-2] + ".on").touch()
time.sleep(60)
"""


def test_it_ends_what_takes_too_long(tmp_path: Path) -> None:
    child = script(tmp_path, SLEEPS, limit_s=0.5)
    said, _ = child.communicate(timeout=30)
    assert left(tmp_path) == []
    assert not _with_argument(str(tmp_path))
    (verdict,) = brought(said, rc=child.returncode).verdicts
    assert (verdict.status, verdict.error) == (Status.ERROR, "LaunchFailed")
    assert "did not end within 0.5 s" in verdict.reason


def sleeping(folder: Path) -> subprocess.Popen[str]:
    """The script, once its ranks run."""
    child = script(folder, SLEEPS)
    until(lambda: list((folder / "tmp").glob("*/*.on")))
    return child


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("times", [1, 3])
def test_told_to_end_it_leaves_no_folder_and_no_rank(tmp_path: Path, times: int) -> None:
    """timeout(1) passes on what it is sent, so that a sweep tells it more than once."""
    child = sleeping(tmp_path)
    for _ in range(times):
        child.send_signal(signal.SIGTERM)
        time.sleep(0.01)
    assert child.wait(10) == 128 + signal.SIGTERM
    child.communicate()
    assert left(tmp_path) == []
    assert not _with_argument(str(tmp_path))


def test_killed_outright_it_leaves_no_folder(tmp_path: Path) -> None:
    """What it started is swept by its mark; the folder has none."""
    child = sleeping(tmp_path)
    child.kill()
    child.communicate()
    until(lambda: not left(tmp_path), 5)
    for pid in _with_argument(str(tmp_path)):
        os.kill(pid, signal.SIGKILL)


FILLS = """
import pathlib, sys
with open(sys.argv[-2] + ".fill", "wb", buffering=0) as file:
    for _ in range(1000):
        file.write(bytes(4096))
"""


def test_a_disk_that_fills_up_is_told_and_nothing_is_left(
    tmp_path: Path, small_disk: Callable[[int], Path]
) -> None:
    disk = small_disk(256)
    child = script(tmp_path, FILLS, disk)
    said, _ = child.communicate(timeout=30)
    assert list(disk.iterdir()) == []
    (verdict,) = brought(said, rc=child.returncode).verdicts
    assert (verdict.status, verdict.error) == (Status.ERROR, "LaunchFailed")
    assert f"no room is left in {disk}" in verdict.reason


def test_without_room_for_a_script_nothing_is_started(
    tmp_path: Path, small_disk: Callable[[int], Path]
) -> None:
    """There is room for a folder, and for nothing in it."""
    disk = small_disk(16)
    (disk / "filled").write_bytes(bytes(12288))
    child = script(tmp_path, TRACES, disk)
    said, wrong = child.communicate(timeout=30)
    assert wrong == ""
    assert [each.name for each in disk.iterdir()] == ["filled"]
    (verdict,) = brought(said, rc=child.returncode).verdicts
    assert "No space left on device" in verdict.reason


def _with_argument(text: str) -> list[int]:
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line and "train_step.py" in line:
            found.append(int(each.parent.name))
    return found


# --- what it prints -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    paths, _ = made(tmp_path_factory.mktemp("good"), **SMALL)
    return paths


def test_traces_go_through_lines_unchanged(good: Sequence[Path]) -> None:
    told = parse(output(printed(good)))
    assert told.ran is not None
    assert (told.ran.ranks, told.ran.step_ms) == (2, (161.5, 160.5))
    job, unread = facts_of(told.traces)
    assert [rank.rank for rank in job.ranks] == [0, 1]
    assert unread == ()
    shown = without_traces(printed(good)).splitlines()
    assert [line.partition(" ")[0] for line in shown] == ["step", "traced", "traced"]


@given(cut=st.floats(0, 1), damage=st.booleans())
@settings(max_examples=40)
def test_what_is_cut_or_damaged_is_never_a_trace(cut: float, damage: bool) -> None:
    data = bytes(range(256)) * 8
    text = _printed_of(data)
    at = int(cut * (len(text) - 1))
    broken = text[:at] + ("!" + text[at + 1 :] if damage else "")
    try:
        told = parse(output(broken))
    except ParseError:
        return
    assert set(told.traces.values()) <= {data}


def _printed_of(data: bytes) -> str:
    lines = [f"step {json.dumps(RAN)}"]
    for rank in range(2):
        lines += [
            f"trace {rank} {base64.b64encode(data[at : at + 300]).decode()}"
            for at in range(0, len(data), 300)
        ]
        lines.append(f"traced {rank} {len(data)}")
    return "\n".join((*lines, ""))


# --- how it is judged ---------------------------------------------------------------------------


def test_a_good_step_passes_with_its_picture(good: Sequence[Path]) -> None:
    told = brought(printed(good))
    (verdict,) = told.verdicts
    assert verdict.status is Status.PASS
    assert told.outcome.good is True
    assert verdict.reason.startswith("DDP step of 2 ranks on NVIDIA H100 80GB HBM3 (nccl): ")
    assert verdict.measured["step_ms"] == 161.0
    assert [figure.form for figure in verdict.figures] == ["lanes"]


def test_a_late_rank_and_serial_communication_are_named(tmp_path: Path) -> None:
    late, _ = made(tmp_path / "late", **{**SMALL, "ranks": 4, "straggler": 2,
                                       "straggler_factor": 1.8})  # fmt: skip
    (first, *_) = brought(printed(late)).verdicts
    assert (first.status, first.cause) == (Status.FAIL, STRAGGLER)
    assert first.hosts == ("gpu-01",)
    assert "rank 2 starts its collectives" in first.reason
    serial, _ = made(tmp_path / "serial", **{**SMALL, "overlap": False, "layer_mb": 64.0})
    (second, *_) = brought(printed(serial)).verdicts
    assert (second.status, second.cause) == (Status.FAIL, NOT_OVERLAPPED)
    on_cpus = brought(printed(serial, {**RAN, "backend": "gloo", "device": "cpu"}))
    assert {each.status for each in on_cpus.verdicts} == {Status.WARN}
    assert "no proof against an accelerator" in on_cpus.verdicts[0].reason


def test_a_missing_trace_is_never_a_pass(good: Sequence[Path]) -> None:
    text = printed(good)
    whole = text[: text.index("trace 1 ")]
    (half,) = brought(whole).verdicts
    assert (half.status, half.error) == (Status.ERROR, "TraceMissing")
    (big,) = brought(f"{whole}left-out 1 9000000\n").verdicts
    assert "rank 1 has 8.6 MiB, more than trace_mib" in big.reason
    (cut,) = brought(text[: text.index("traced 1 ")]).verdicts
    assert cut.error == "ParseError"


@pytest.mark.parametrize(
    ("text", "stderr", "rc", "wanted"),
    [
        ("", "sh: 1: python3: not found", 127, ("skip", "python3 cannot be started there")),
        ('problem {"what": "torch 2.7 there sees no cuda", "missing": "cuda"}\n', "", 4,
         ("skip", "sees no cuda")),
        ("", "RuntimeError: NCCL error: unhandled system error\nx ChildFailedError: y", 4,
         ("error", "RuntimeError: NCCL error")),
        ("step [1]\n", "", 0, ("error", "cannot read the output of train_step.py")),
    ],
)  # fmt: skip
def test_what_brought_nothing_says_why(
    text: str, stderr: str, rc: int, wanted: tuple[str, str]
) -> None:
    (verdict,) = brought(text, stderr, rc).verdicts
    assert verdict.status.value == wanted[0]
    assert wanted[1] in verdict.reason


def test_a_lost_run_and_one_that_took_too_long_are_errors() -> None:
    (lost,) = read(Answered(problem="the run on gpu-01 was lost")).verdicts
    (late,) = read(Answered(outputs=(output(""),), timed_out=True)).verdicts
    assert (lost.error, late.error) == ("LaunchFailed", "RunTimedOut")
