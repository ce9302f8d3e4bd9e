"""Coverage by package, from the data that ``make coverage`` combined: one line each."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path, PurePath


def package_of(path: str) -> str:
    """``src/commcheck/report/html.py`` is of ``commcheck/report``, a check of its layer."""
    parts = PurePath(path).parts
    parts = parts[1:] if parts[0] == "src" else parts
    return "/".join(parts[: min(2, len(parts) - 1)])


def main() -> None:
    """Print the table, and the whole below it."""
    coverage = Path(sys.executable).with_name("coverage")
    done = subprocess.run([coverage, "json", "-q", "-o", "-"], check=True, capture_output=True)
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path, told in json.loads(done.stdout)["files"].items():
        for name in (package_of(path), "all"):
            sums[name].update({k: v for k, v in told["summary"].items() if isinstance(v, int)})
    print(f"{'package':24} {'lines':>7} {'run':>6} {'branches':>9} {'run':>6}")
    for name, of in sorted(sums.items(), key=lambda pair: (pair[0] == "all", pair[0])):
        lines, branches = of["num_statements"], of["num_branches"]
        shares = of["covered_lines"] / max(1, lines), of["covered_branches"] / max(1, branches)
        print(f"{name:24} {lines:7} {shares[0]:6.1%} {branches:9} {shares[1]:6.1%}")


if __name__ == "__main__":
    main()
