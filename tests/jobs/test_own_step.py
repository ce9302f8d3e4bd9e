"""``commcheck step``: the start of a command is wrapped; what is there stays as it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commcheck.errors import CommcheckError, UsageError
from commcheck.jobs.job import Answered, Ran
from commcheck.jobs.outcomes import Run
from commcheck.jobs.step import wrapper
from commcheck.jobs.step.job import step_job
from commcheck.jobs.step.limits import StepLimits
from commcheck.jobs.step.own import Wanted, analyse_own
from commcheck.model import Status
from commcheck.trace.rungs import Known
from tests.jobs.steps import member, output
from tests.trace.expected import made

WANTED = Wanted(steps=2, skip=3, limit_s=20.0, go_on=False)


def step(*argv: str, wanted: Wanted = WANTED, keep: Path | None = None) -> list[str]:
    """The files that were analysed, and what was noted."""
    notes: list[str] = []
    found = analyse_own(argv, wanted, Known(), keep, notes.append)
    return [str(rank["file"]) for rank in found.facts["ranks"]] + notes  # type: ignore[attr-defined] # plain JSON


def test_a_command_that_does_not_train_says_what_is_wanted() -> None:
    with pytest.raises(CommcheckError, match=r"exit code 7\).*torch optimizer"):
        step(sys.executable, "-c", "raise SystemExit(7)")
    with pytest.raises(UsageError, match="no-such-command: No such file"):
        step("no-such-command")


def test_what_is_in_a_folder_is_not_mixed_with_new_traces(tmp_path: Path) -> None:
    (tmp_path / "rank0.json.gz").touch()
    with pytest.raises(UsageError, match="no empty folder"):
        step("true", keep=tmp_path)


def test_the_sites_own_sitecustomize_still_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(CommcheckError):
        step(sys.executable, "-c", "")
    assert (tmp_path / "ran").exists()


TORCH = {
    "torch/__init__.py": "from torch import cuda, distributed, profiler\n",
    "torch/cuda.py": "def is_available(): return False\n",
    "torch/distributed.py": "def is_available(): return False\n",
    "torch/optim/__init__.py": "import torch.optim.optimizer\n",
    "torch/optim/optimizer.py": "hooks = []\nregister_optimizer_step_post_hook = hooks.append\n",
    "torch/profiler.py": """
import os, shutil
class ProfilerActivity: CPU = 0
def schedule(**words): return words
class profile:
    def __init__(self, activities, schedule, on_trace_ready):
        self.left, self.ready = schedule["warmup"] + schedule["active"], on_trace_ready
    def start(self): pass
    def step(self):
        self.left -= 1
        if not self.left: self.ready(self)
    def stop(self): assert not self.left
    def export_chrome_trace(self, path): shutil.copy(os.environ["TRACE"], path)
""",
    "train.py": """
import os, sys, time, torch.optim
first, second = object(), object()
for number in range(int(sys.argv[1])):
    for optimizer in (first, second):
        for hook in torch.optim.optimizer.hooks: hook(optimizer, (), {})
open("trained", "w").close()
if len(sys.argv) > 2: time.sleep(60)
""",
}
"""As much of torch as the hook uses, with the steps of two optimizers."""


@pytest.fixture
def training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in TORCH.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (trace,), _ = made(tmp_path / "made", layers=2, kernels=2, steps=2, ranks=1)
    monkeypatch.setenv("TRACE", str(trace))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("RANK", "3")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "train.py"


def test_steps_of_the_first_optimizer_count(training: Path, tmp_path: Path) -> None:
    assert step(sys.executable, str(training), "6", keep=tmp_path / "kept") == ["rank3.json.gz"]
    assert (tmp_path / "kept" / "rank3.json.gz").exists()
    with pytest.raises(CommcheckError, match="ended before 2 steps were profiled"):
        step(sys.executable, str(training), "5")


def test_the_command_is_ended_once_the_trace_is_there(training: Path, tmp_path: Path) -> None:
    said = step(sys.executable, str(training), "6", "and wait")
    assert said[0] == "rank3.json.gz"
    assert "the command is ended" in said[1]
    told = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(training) not in told.stdout


def test_what_goes_wrong_in_the_hook_stops_no_training(training: Path, tmp_path: Path) -> None:
    (tmp_path / "torch/profiler.py").write_text("")
    with pytest.raises(CommcheckError, match="left no trace: AttributeError"):
        step(sys.executable, str(training), "6")
    assert (tmp_path / "trained").exists()


@pytest.mark.parametrize("torch", ["new", "too old"])
def test_a_training_goes_on_where_the_folder_of_traces_is_gone(
    training: Path, tmp_path: Path, torch: str
) -> None:
    """Who waited for the traces was killed, and the folder is removed; or it is full."""
    if torch == "too old":
        (tmp_path / "torch/optim/optimizer.py").write_text("hooks = []\n")
    gone = tmp_path / "gone"
    hook = tmp_path / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(Path(wrapper.__file__).read_text())
    env = {**os.environ, "PYTHONPATH": f"{hook}{os.pathsep}{tmp_path}"}
    env |= {"COMMCHECK_STEP_FOLDER": str(gone)}
    env |= {"COMMCHECK_STEP_SKIP": "3", "COMMCHECK_STEP_STEPS": "2"}
    ran = subprocess.run(
        [sys.executable, training, "6"], env=env, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / "trained").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_told_to_end_it_ends_the_command_and_leaves_no_folder(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "tmp").mkdir()
    commcheck = Path(sys.executable).with_name("commcheck")
    child = subprocess.Popen(
        [commcheck, "step", "--", "sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 60"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        stderr=subprocess.PIPE,
        text=True,
    )
    ends = time.monotonic() + 20
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < ends
        time.sleep(0.02)
    pid = int((tmp_path / "pid").read_text())
    child.send_signal(number)
    code = child.wait(20)
    ends = time.monotonic() + 5
    while list((tmp_path / "tmp").iterdir()):
        assert time.monotonic() < ends
        time.sleep(0.02)
    if number == signal.SIGKILL:
        os.kill(pid, signal.SIGKILL)  # it is the user's own, and nobody was left to end it
    _, said = child.communicate()
    if number != signal.SIGKILL:
        assert (code, said) == (143, "")
        assert not Path(f"/proc/{pid}").exists()


def on_host(*command: str) -> Ran:
    """A run of the site's own command on a host, by the script that is carried there."""
    run, limits = Run(("gpu-01",)), StepLimits(steps=2, skip=3, run_limit_s=40.0)
    one = member(commcheck_train_command=list(command), commcheck_train_python=sys.executable)
    (part,) = step_job().launch(run, {one.name: one}, limits)
    ran = subprocess.run(
        part.requests[0].command.argv, capture_output=True, text=True, check=False, timeout=60
    )
    answered = Answered(outputs=(output(ran.stdout, ran.stderr, ran.returncode),))
    return step_job().read(run, {one.name: one}, limits, answered)


def test_on_a_host_too_the_command_is_profiled_and_ended(
    training: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (verdict,) = on_host(sys.executable, str(training), "6", "wait").verdicts
    assert verdict.reason.startswith("step of the site's own training of 1 ranks on cpu (none): ")
    assert verdict.measured["parameters"] == 0
    assert list((tmp_path / "tmp").iterdir()) == []
    told = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert f"{training} 6" not in told.stdout


def test_what_a_host_s_command_lacks_is_told(training: Path) -> None:
    (verdict,) = on_host(sys.executable, str(training), "4").verdicts
    assert (verdict.status, verdict.error) == (Status.ERROR, "LaunchFailed")
    assert "ended before 2 steps were profiled" in verdict.reason
    (verdict,) = on_host("no-such-command").verdicts
    assert "no-such-command cannot be started" in verdict.reason
