"""Mutants of a module that its tests do not notice: ``make mutants MODULE=... TESTS=...``.

cosmic-ray changes one operator or number at a time, in a copy of the tree, and runs the tests. A
sample of MUTANTS of them is tried, by SEED. The survivors are printed with what was changed: each
is a test that is missing, or a change that means nothing.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

CONFIG = """\
[cosmic-ray]
module-path = {module}
timeout = 120.0
excluded-modules = []
test-command = {tests}

[cosmic-ray.distributor]
name = "local"
"""


SILENT = ("BinaryOperator_BitOr_", "ComparisonOperator_Is_Eq", "ComparisonOperator_IsNot_NotEq")
"""They mean nothing here: ``|`` stands in annotations, ``is`` before None and members of enums."""


def sample(session: Path, lines: list[str], most: int, seed: int) -> tuple[int, int]:
    """Keep at most so many mutants of the session: how many there were, and are.

    Left out are the silent ones and those of decorators: a dataclass that is not frozen is no bug.
    """
    with sqlite3.connect(session) as database:
        told = database.execute(
            "SELECT job_id, operator_name, start_pos_row FROM mutation_specs"
        ).fetchall()
        jobs = sorted(
            job
            for job, operator, row in told
            if not lines[row - 1].startswith("@") and not any(each in operator for each in SILENT)
        )
        kept = random.Random(seed).sample(jobs, min(most, len(jobs)))
        for job in {job for job, _, _ in told}.difference(kept):
            for table in ("mutation_specs", "work_items"):
                database.execute(f"DELETE FROM {table} WHERE job_id = ?", (job,))
    return len(jobs), len(kept)


def main(module: str, tests: list[str]) -> int:
    """Try the mutants; 0 whether or not some survive: they are for a person to look at."""
    most, seed = int(os.environ.get("MUTANTS", "60")), int(os.environ.get("SEED", "1"))
    tools = Path(sys.executable).parent
    with tempfile.TemporaryDirectory(prefix="commcheck-mutants-") as name:
        tree = Path(name) / "tree"
        shutil.copytree(".", tree, ignore=shutil.ignore_patterns(".*", "reports", "dist"))
        words = [str(tools / "python"), "-m", "pytest", "-qx", "-n", "0", "-m", "not slow", *tests]
        config = CONFIG.format(module=json.dumps(module), tests=json.dumps(shlex.join(words)))
        (tree / "mutants.toml").write_text(config)
        # The copy is imported, and not what is installed.
        environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}:{tree}"}

        def ray(*command: str) -> None:
            subprocess.run(
                [tools / command[0], *command[1:]], cwd=tree, env=environment, check=True
            )

        ray("cosmic-ray", "baseline", "mutants.toml")  # where these tests fail, they kill all
        ray("cosmic-ray", "init", "mutants.toml", "session.sqlite")
        lines = Path(module).read_text().splitlines()
        count, kept = sample(tree / "session.sqlite", lines, most, seed)
        print(f"{module}: {count} mutants, {kept} of them tried", flush=True)
        ray("cosmic-ray", "exec", "mutants.toml", "session.sqlite")
        ray("cr-report", "session.sqlite", "--surviving-only", "--show-diff")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
