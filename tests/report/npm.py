"""Tools of npm that tests use: installed once into the user's cache, at versions named here."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

VERSIONS = {"axe-core": "4.14.1", "html-validate": "9.7.1"}


def installed(name: str) -> Path:
    """The folder of a package; the test is skipped where npm is missing or cannot install it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "commcheck-tests" / f"{name}-{VERSIONS[name]}"
    package = folder / "node_modules" / name
    if not package.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is not installed")
        folder.mkdir(parents=True, exist_ok=True)
        words = [npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
        done = subprocess.run(
            [*words, "--prefix", str(folder), f"{name}@{VERSIONS[name]}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        if done.returncode:
            pytest.skip(f"npm cannot install {name}: {done.stderr[-200:]}")
    return package
