"""A training step with real torch on CPUs, over real sshd: profiled, brought back, judged, gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.jobs.netns import IDLE_GPUS, Net, why_not
from tests.sshd import SshdFleet, marked, why_no_sshd

pytestmark = [pytest.mark.slow, pytest.mark.sshd, pytest.mark.timeout(400)]

COMMCHECK = Path(sys.executable).parent / "commcheck"
IDLE = """
case $1 in
  --query-compute-apps*) ;;
  --query-gpu=index,memory*) printf '0, 4, 0\\n1, 4, 0\\n' ;;
  *) exit 6 ;;
esac
"""
PARAMS = {"device": "cpu", "ranks": 2, "steps": 3, "run_limit_s": 300}


def playbook(check: str, **params: object) -> dict[str, Any]:
    """One play of one check."""
    asked = {"check": check, "params": {**PARAMS, **params}}
    play = {"layer": "runtime", "checks": [asked]}
    return {"name": "step", "allow": ["load"], "plays": [play]}


def torch_python() -> str:
    """A Python that has torch: COMMCHECK_TORCH_PYTHON, else this one. "" where there is none."""
    python = os.environ.get("COMMCHECK_TORCH_PYTHON", sys.executable)
    words = [python, "-c", "import importlib.util as u; exit(u.find_spec('torch') is None)"]
    return "" if subprocess.run(words, check=False, capture_output=True).returncode else python


def run(
    fleet: SshdFleet, folder: Path, python: str, book: dict[str, Any] | None = None, **more: object
) -> dict[str, dict[str, Any]]:
    """The verdicts of a run by subject; nothing of the run is left on the hosts."""
    book = book or playbook("runtime.train-step")
    (folder / "step.yaml").write_text(yaml.safe_dump(book))
    variables = {"commcheck_platform": "gpu-roce", "commcheck_train_python": python, **more}
    fleet.write_inventory(dict.fromkeys(fleet.names, variables))
    words: list[str | Path] = [COMMCHECK, "run", "-i", fleet.inventory, folder / "step.yaml"]
    words += ["--allow", "load", "--known-hosts", fleet.known_hosts, "--no-progress"]
    words += ["--out", folder / "reports"]
    subprocess.run(words, check=False, capture_output=True)
    document = json.loads((folder / "reports/latest/results.json").read_text())
    check = book["plays"][0]["checks"][0]["check"]
    assert marked(document["run"]["id"]) == []
    return {each["subject"]: each for each in document["verdicts"] if each["check"] == check}


def left_behind() -> set[Path]:
    where = Path(tempfile.gettempdir())
    return {each for name in ("commcheck-*", "torchelastic_*") for each in where.glob(name)}


@pytest.fixture
def folders() -> set[Path]:
    """What training steps, and torchrun for them, had left in the temporary folder before."""
    return left_behind()


def test_a_step_of_two_ranks_is_profiled_and_leaves_nothing(
    tmp_path: Path, folders: set[Path]
) -> None:
    python = torch_python()
    if not python:
        pytest.skip("no torch: COMMCHECK_TORCH_PYTHON names a Python that has it (2.13.0, CPU)")
    if why_no_sshd():
        pytest.skip(why_no_sshd())
    with SshdFleet(tmp_path, n=1, sysfs=True) as fleet:
        fleet.tool("nvidia-smi", IDLE)
        (verdict,) = run(fleet, tmp_path, python).values()
    # Other work on these cores may make a rank late: then it is a warning, and nothing worse.
    assert verdict["status"] in ("pass", "warn"), verdict
    assert verdict["reason"].startswith("DDP step of 2 ranks on cpu (gloo): ")
    assert verdict["measured"]["ranks"] == 2
    page = (tmp_path / "reports/latest/report.html").read_text()
    assert "DDP step of 2 ranks" in page
    assert "trace 0 " not in page
    assert left_behind() <= folders


def test_two_hosts_are_one_training(tmp_path: Path, folders: set[Path]) -> None:
    python = torch_python()
    if not python:
        pytest.skip("no torch: COMMCHECK_TORCH_PYTHON names a Python that has it (2.13.0, CPU)")
    if reason := why_not():
        pytest.skip(reason)
    net = Net(tmp_path)
    net.accelerators("0x10de", "0x030200", count=1)
    net.tool("nvidia-smi", IDLE_GPUS)
    net.tool("python-bare", f'exec {sys.executable} -S "$@"')
    check = {"check": "runtime.train-fleet", "params": {**PARAMS, "ranks": 1}}
    variables = {"commcheck_platform": "gpu-roce", "commcheck_mpi_interface": "eth0"}
    found = []
    with net.running():
        for each in (python, "python-bare"):
            given = {**variables, "commcheck_train_python": each}
            net.commcheck(check, given, "--no-progress", layer="runtime").wait(200)
            found.append({one["subject"]: one for one in net.verdicts("runtime.train-fleet")})
        assert net.processes("python", "python3", "python3.11", "pt_main_thread") == {}
    together, bare = found
    assert together.keys() == bare.keys() == {"@gpu", "gpu-a", "gpu-b"}
    whole = together["@gpu"]
    assert whole["status"] in ("pass", "warn"), whole
    assert whole["reason"].startswith("DDP step of 2 ranks on cpu (gloo): ")
    # Which of the two hosts held the other up is said of that host.
    assert {together[each]["status"] for each in ("gpu-a", "gpu-b")} <= {"pass", "warn"}, together
    assert bare["@gpu"]["kind"] == "undecidable"
    assert "has no torch" in bare["@gpu"]["reason"]
    assert left_behind() <= folders


def test_the_sites_own_training_is_profiled_on_a_host(tmp_path: Path, folders: set[Path]) -> None:
    python = torch_python()
    if not python:
        pytest.skip("no torch: COMMCHECK_TORCH_PYTHON names a Python that has it (2.13.0, CPU)")
    if why_no_sshd():
        pytest.skip(why_no_sshd())
    (tmp_path / "training.py").write_text(TRAINING)
    command = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    with SshdFleet(tmp_path, n=1, sysfs=True) as fleet:
        fleet.tool("nvidia-smi", IDLE)
        (verdict,) = run(
            fleet,
            tmp_path,
            sys.executable,
            commcheck_train_command=[*command, "training.py"],
            commcheck_train_folder=str(tmp_path),
        ).values()
    assert verdict["status"] in ("pass", "warn"), verdict
    assert verdict["reason"].startswith("step of the site's own training of 2 ranks on cpu (gloo)")
    assert verdict["measured"]["parameters"] == 4 * (256 * 256 + 256)
    assert left_behind() <= folders


TRAINING = """
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.set_num_threads(1)
layers = [torch.nn.Linear(256, 256) for _ in range(4)]
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
optimizer = torch.optim.AdamW(model.parameters())
data = torch.randn(32, 256)
while True:
    model(data).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_the_users_own_training_is_profiled_without_an_edit(tmp_path: Path) -> None:
    python = torch_python()
    if not python:
        pytest.skip("no torch: COMMCHECK_TORCH_PYTHON names a Python that has it (2.13.0, CPU)")
    (tmp_path / "training.py").write_text(TRAINING)
    words: list[str | Path] = [COMMCHECK, "step", "--steps", "2", "--skip-steps", "3"]
    words += ["--keep", tmp_path / "traces", "--out", tmp_path / "reports", "--format", "json"]
    words += ["--", python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    ran = subprocess.run([*words, tmp_path / "training.py"], check=False, capture_output=True)
    document = json.loads(ran.stdout)
    assert ran.returncode == document["run"]["exit_code"] in (0, 1), ran.stderr
    assert {each["check"] for each in document["verdicts"]} == {"runtime.trace"}
    assert [len(rank["steps"]) for rank in document["facts"]["ranks"]] == [2, 2]
    traces = sorted(each.name for each in (tmp_path / "traces").iterdir())
    assert traces == ["rank0.json.gz", "rank1.json.gz"]
    assert not [
        each
        for each in Path("/proc").glob("[0-9]*/cmdline")
        if str(tmp_path / "training.py").encode() in _read(each)
    ]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_host_without_torch_says_what_to_name(tmp_path: Path) -> None:
    if why_no_sshd():
        pytest.skip(why_no_sshd())
    with SshdFleet(tmp_path, n=1, sysfs=True) as fleet:
        fleet.tool("nvidia-smi", IDLE)
        # -S: no packages but the standard library's.
        fleet.tool("python-bare", f'exec {sys.executable} -S "$@"')
        (bare,) = run(fleet, tmp_path, "python-bare").values()
        (none,) = run(fleet, tmp_path, "no-such-python").values()
    assert (bare["status"], bare["kind"]) == ("skip", "undecidable")
    assert "has no torch" in bare["reason"]
    assert "commcheck_train_python" in bare["reason"]
    assert (none["status"], none["kind"]) == ("skip", "undecidable")
    assert "no-such-python cannot be started" in none["reason"]
