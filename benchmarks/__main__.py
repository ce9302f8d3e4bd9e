"""One command, one table: ``python -m benchmarks``. See README.md beside this file."""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import log_audit, peers, rows, trace
from benchmarks.table import Row, table

PARTS = ("start-up", "rendering", "real", "cheap", "waiting", "trace", "log")
MORE = ("huge",)
"""Asked for by name only: five gigabytes take minutes to make."""


def main() -> None:
    """Measure what was asked for, print the table, keep it where --write is given."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "part", nargs="*", metavar="PART", help=f"default: all of {PARTS}; also {MORE}"
    )
    parser.add_argument("--real-hosts", type=int, default=128, help="sshd processes [128]")
    parser.add_argument("--cheap-hosts", type=int, default=1000, help="simulated hosts [1000]")
    parser.add_argument("--write", action="store_true", help="replace RESULTS.md")
    options = parser.parse_args()
    parts: dict[str, Callable[[], Iterator[Row]]] = {
        "real": lambda: rows.real(options.real_hosts),
        "cheap": lambda: rows.cheap(options.cheap_hosts),
        "waiting": lambda: rows.waiting(500),
        "start-up": rows.start_up,
        "rendering": lambda: rows.rendering(2000, 60),
        "trace": lambda: trace.traces(200),
        "huge": lambda: trace.huge(5),
        "log": lambda: log_audit.audits(5_000_000),
    }
    if unknown := set(options.part) - set(parts):
        parser.error(f"no part {', '.join(unknown)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the servers must not be left behind
    load_before = os.getloadavg()
    found: list[Row] = []
    for part in options.part or PARTS:
        for row in parts[part]():
            found.append(row)
            told = f"{row.what}: {row.who}: {row.cost.cpu_s:.2f} s CPU {row.told}"
            print(told, file=sys.stderr, flush=True)
    text = "\n".join([*about(load_before, bool({"real"} & set(options.part or PARTS))), "",
                      *table(found), ""])  # fmt: skip
    print(text)
    if options.write:
        path = Path(__file__).with_name("RESULTS.md")
        path.write_text(f"# Results\n\nWritten by `python -m benchmarks --write`.\n\n{text}")


def about(load: tuple[float, float, float], with_peers: bool) -> list[str]:
    """Date, machine, versions: without them numbers say nothing."""
    from importlib.metadata import version

    names = ("paramiko", "fabric", "cryptography", "commcheck")
    own = ", ".join(f"{name} {version(name)}" for name in names)
    lines = [
        f"- {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores, "
        f"{platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}",
        f"- {own}",
        f"- load of the machine before and after: {load[0]:.1f}, {os.getloadavg()[0]:.1f}",
    ]
    if with_peers:
        told = peers.versions(peers.install())
        lines.append("- " + ", ".join(f"{name} {number}" for name, number in told.items()))
    return lines


if __name__ == "__main__":
    main()
