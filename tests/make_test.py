"""What ``make test`` runs: Debian packages the tests want, then ruff, mypy and pytest.

Installs missing packages where it may (root and apt-get). Where it may not, the tests that need
them are skipped and the last line names the packages; with ``CI=true`` that is a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

# The tool that proves a package is there, and the package.
PACKAGES = {
    "/usr/sbin/sshd": "openssh-server",
    "ssh": "openssh-client",
    "csh": "tcsh",
    "busybox": "busybox",
    "chromium": "chromium",
    "unshare": "util-linux",
    "promtool": "prometheus",
}


def missing() -> list[str]:
    """Debian packages whose tool is not on this machine."""
    return [package for tool, package in PACKAGES.items() if shutil.which(tool) is None]


def install(packages: list[str]) -> None:
    """Install packages where this user may; a failure is told by ``missing`` afterwards."""
    if not packages or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (
        ["update", "-qq"],
        ["install", "-y", "-qq", "--no-install-recommends", *packages],
    ):
        subprocess.run(["apt-get", *words], check=False, env=environment, stdout=subprocess.DEVNULL)


def main() -> int:
    """Run everything; the exit code is that of the first step that fails."""
    ci = os.environ.get("CI") == "true"
    install(missing())
    tools = Path(sys.executable).parent
    marks = ["-m", "not soak"] if ci else ["-m", "not slow and not soak"]
    steps = (
        [tools / "ruff", "check"],
        [tools / "ruff", "format", "--check"],
        [tools / "mypy"],
        [tools / "pytest", "-n", "2", *marks],
    )
    for step in steps:
        print("+", *step, flush=True)
        code = subprocess.run([str(word) for word in step], check=False).returncode
        if code != 0:
            return code
    lacking = missing()
    if lacking:
        print(f"tests were skipped for want of Debian packages: {' '.join(lacking)}")
    return 1 if ci and lacking else 0


if __name__ == "__main__":
    sys.exit(main())
