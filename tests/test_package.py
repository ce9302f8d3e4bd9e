"""The wheel, built from the sdist and installed outside the checkout, is whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[1]
SITE = '''"""A site's own.

Why: to be there.
Reads: nothing.
"""

from commcheck.check import Check, Nothing, passed
from commcheck.model import Machine, Verdict, Words


def judge(seen: Nothing, machine: Machine, want: Nothing, limits: Nothing) -> Verdict:
    return passed("seen by the site's own check")


CHECK = Check(id="{id}", title=Words("x", "x"), subject=Machine, seen=Nothing, judge=judge)
'''


def run(words: Sequence[str | Path], cwd: Path, *, codes: Sequence[int] = (0,)) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COMMCHECK"))}
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, env=clean)
    assert done.returncode in codes, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The console script of a fresh environment."""
    base = tmp_path_factory.mktemp("package")
    tree = base / "tree"
    listed = run(["git", "ls-files", "-co", "--exclude-standard"], ROOT).splitlines()
    for name in listed:
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    # "build" without a choice makes the wheel from the sdist.
    run([sys.executable, "-m", "build", "--outdir", base / "dist", tree], base)
    run([sys.executable, "-m", "venv", base / "venv"], base)
    (wheel,) = (base / "dist").glob("*.whl")
    run([base / "venv/bin/python", "-m", "pip", "install", "--quiet", wheel], base)
    return base / "venv/bin/commcheck"


def test_checks_and_playbooks_are_in_the_wheel(installed: Path, tmp_path: Path) -> None:
    checks = json.loads(run([installed, "list", "checks", "--format", "json"], tmp_path))
    files = {path.stem.replace("_", "-") for path in (ROOT / "checks").glob("*/*.py")}
    assert {row["check"].partition(".")[2] for row in checks} == files
    assert all(row["source"] == "bundled" for row in checks)
    assert "physical.reachable" in run([installed, "run", "-i", "a,", "--dry-run"], tmp_path)


def test_a_sites_folder_adds_and_overrides(installed: Path, tmp_path: Path) -> None:
    site = tmp_path / "checks" / "physical"
    site.mkdir(parents=True)
    (site / "our_own.py").write_text(SITE.format(id="physical.our-own"))
    (site / "gpu_driver.py").write_text(SITE.format(id="physical.gpu-driver"))
    inventory = "all: {hosts: {here: {ansible_connection: local}}}\n"
    (tmp_path / "inv.yaml").write_text(inventory)
    words: list[str | Path] = [installed, "run", "-i", "inv.yaml", "--format", "json"]
    document = json.loads(run(words, tmp_path, codes=(0, 1, 3)))
    reasons = {v["check"]: v["reason"] for v in document["verdicts"]}
    assert reasons["physical.our-own"] == "seen by the site's own check"
    assert reasons["physical.gpu-driver"] == "seen by the site's own check"
    summary = run([installed, "report"], tmp_path, codes=(0, 1, 3))
    assert "physical.gpu-driver" in summary
    assert "overrides" in summary
    assert (tmp_path / "reports/latest/runbook.md").stat().st_size > 1000
