"""The measurements, one function each; every one yields rows of the table."""

from __future__ import annotations

import os
import resource
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import peers
from benchmarks.measure import Cost, cpu_s_of, measure
from benchmarks.record import large
from benchmarks.table import Row
from benchmarks.yardsticks import LOGIN_MS, Pace, gain_of_two
from commcheck.demo.fleet import USER
from commcheck.discover import discover
from commcheck.report import events
from tests.cheap import Answer, CheapFleet, Script, healthy_script
from tests.sshd import SshdFleet, why_no_sshd

ROOT = Path(__file__).parents[1]
HERE = Path(__file__).parent
COMMCHECK = str(Path(sys.executable).parent / "commcheck")
CHECKS = ("--checks", str(HERE / "checks"))
TWENTY = (*CHECKS, str(HERE / "playbooks" / "twenty.yaml"))
NAP = (*CHECKS, str(HERE / "playbooks" / "nap.yaml"))


def _run(out: Path, *arguments: str, hosts: int = 0) -> Cost:
    """``commcheck run``, proven: all hosts were judged and nothing failed."""
    argv = (COMMCHECK, "run", *arguments, "--out", str(out), "--no-progress")
    cost = measure(argv, cwd=ROOT)
    if cost.code != 0 or f"PASS  {hosts:,} host" not in cost.output:
        raise SystemExit(f"the run did not pass: {shlex.join(argv)}\n{cost.output}")
    return cost


# --- real servers -------------------------------------------------------------------------------


def real(hosts: int) -> Iterator[Row]:
    """The same twenty commands on real sshd, by commcheck and by its peers.

    A peer takes minutes and commcheck half a one: it runs before, between and after them, and the
    middle run counts, so that a moment in which the machine is slow decides nothing.
    """
    if reason := why_no_sshd():
        print(f"real sshd: skipped, {reason}", file=sys.stderr)
        return
    what = f"20 commands, one of 200 kB, on {hosts} sshd hosts"
    venv = peers.install()
    with tempfile.TemporaryDirectory() as place, SshdFleet(Path(place), hosts) as fleet:
        folder = Path(place)
        arguments = (
            "-i", str(fleet.inventory), "--known-hosts", str(fleet.known_hosts),
            "--ssh-config", os.devnull, "-f", str(peers.FORKS), *TWENTY,
        )  # fmt: skip

        def ours() -> tuple[Cost, Cost]:
            one = _run(folder / "out", *arguments, "-l", fleet.names[0], hosts=1)
            return _run(folder / "out", *arguments, hosts=hosts), one

        logins = [_login()]
        turns = [ours()]
        others = []
        places = [
            peers.Place(name, fleet.hosts_by_name[name].address, fleet.hosts_by_name[name].port)
            for name in fleet.names
        ]
        entrants = peers.entrants(venv, folder, places, fleet.key, fleet.known_hosts)
        for number, entrant in enumerate(entrants, start=1):
            cost = measure(entrant.argv, environ=entrant.environ, cwd=entrant.cwd)
            extra = "" if cost.code == 0 else f"exit {cost.code}: {cost.output[-200:]!r}"
            others.append(Row(what, entrant.name, hosts, cost, extra))
            if number % 3 == 0:
                turns.append(ours())
                logins.append(_login())
        cost, one = sorted(turns, key=lambda turn: turn[0].cpu_s)[len(turns) // 2]
        pace = _pace(sorted(logins, key=lambda login: login.cost.cpu_s)[len(logins) // 2])
        beyond = (cost.cpu_s - one.cpu_s) / (hosts - 1) * 1e3
        extra = (
            f"{pace.time(cost.cpu_s / hosts * 1e3, 'ms')}; {one.cpu_s:.2f} s for the first host, "
            f"{beyond:.1f} ms for each further one; the middle of {len(turns)} runs"
        )
        yield Row(what, "commcheck", hosts, cost, extra, "<= 16 ms")
        yield from others


# --- simulated hosts ----------------------------------------------------------------------------


def script() -> Script:
    """A healthy simulated host that also knows the twenty commands and how to nap."""
    answers = {"sleep 8": Answer("", seconds=8.0)}
    for line in peers.COMMANDS.read_text().splitlines():
        words = shlex.split(line)
        told = subprocess.run(words, check=True, capture_output=True, text=True)
        answers[shlex.join(words)] = Answer(told.stdout)
    return healthy_script(discover((), cwd=HERE / "playbooks")).with_answers(answers)


def cheap(hosts: int) -> Iterator[Row]:
    """The client alone: servers that answer without running anything."""
    yield from _cheap("20 commands, one of 200 kB", hosts, TWENTY)
    yield from _cheap("the whole climb", hosts // 5, ())


def _cheap(what: str, hosts: int, book: tuple[str, ...]) -> Iterator[Row]:
    what = f"{what}, {hosts} simulated hosts"
    host = script()
    login = _login(hosts)
    if book:
        yield login
    first: Row | None = None
    for workers in (1, 2):
        # A folder each: what an earlier run left there would be read, too.
        with tempfile.TemporaryDirectory() as place, CheapFleet(hosts, host) as fleet:
            arguments = (*fleet.arguments, *book, "--workers", str(workers))
            before = cpu_s_of(fleet.server.pid)
            cost = _run(Path(place), *arguments, hosts=hosts)
            servers_s = cpu_s_of(fleet.server.pid) - before
        rate = _pace(login).rate(hosts / cost.wall_s, "hosts/s")
        extra = f"{rate}, the servers took {servers_s:.1f} s of CPU"
        if first is not None:
            faster, gain = first.cost.wall_s / cost.wall_s, gain_of_two()
            extra += (
                f", {faster:.2f} x ({2 * faster / gain:.2f} on two free cores: two processes that "
                f"share nothing gain {gain:.2f} x here)"
            )
        hold = ""
        if book:
            hold = ">= 80 hosts/s, <= 150 MB" if workers == 1 else ">= 1.5 x"
        who = f"commcheck, {workers} worker{'s' * (workers > 1)}"
        row = Row(what, who, hosts, cost, extra, hold)
        yield row
        first = first or row


def _login(hosts: int = 300) -> Row:
    """The yardstick of the sweeps: paramiko alone, which logs in and out again."""
    with CheapFleet(hosts, Script("")) as fleet:
        words = ("-m", "benchmarks.bare_login", str(fleet.inventory), str(fleet.key), USER)
        cost = measure((sys.executable, *words), cwd=ROOT)
    if cost.output != f"{hosts} logins\n":
        raise SystemExit(cost.output)
    what = f"to log in, and out again, on {hosts} simulated hosts"
    return Row(what, "paramiko alone", hosts, cost, f"{LOGIN_MS} ms there")


def _pace(login: Row) -> Pace:
    return Pace(login.cost.cpu_s / login.hosts * 1e3 / LOGIN_MS)


def waiting(hosts: int) -> Iterator[Row]:
    """Every host takes eight seconds at the same time; next to it hosts that take none."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8 * hosts)), hard))
    costs = []
    for seconds in (0.0, 8.0):
        host = script().with_answers({"sleep 8": Answer("", seconds=seconds)})
        with tempfile.TemporaryDirectory() as place, CheapFleet(hosts, host) as fleet:
            arguments = (*fleet.arguments, *NAP, "--forks", str(hosts), "--workers", "1")
            costs.append(_run(Path(place), *arguments, hosts=hosts))
    none, all_ = costs
    waited_ms = (all_.cpu_s - none.cpu_s) / hosts / 8 * 1e3
    what = f"{hosts} hosts at once"
    yield Row(f"{what}, nothing to wait for", "commcheck", hosts, none)
    yield Row(f"{what}, waiting in sleep 8", "commcheck", hosts, all_,
              f"waiting: {waited_ms:.2f} ms CPU a host and second",
              "<= 1 ms a host and second")  # fmt: skip


# --- no hosts -----------------------------------------------------------------------------------


def start_up() -> Iterator[Row]:
    """The command line, and a run that has one host only."""
    costs = [measure((COMMCHECK, "--help"), cwd=ROOT) for _ in range(5)]
    best = min(costs, key=lambda cost: cost.wall_s)
    yield Row("commcheck --help", "commcheck", 1, best, f"{best.wall_s:.3f} s", "< 0.15 s")
    with tempfile.TemporaryDirectory() as place, CheapFleet(1, script()) as fleet:
        cost = _run(Path(place), *fleet.arguments, hosts=1)
    yield Row("the whole climb on one host: the fixed part", "commcheck", 1, cost)


def rendering(hosts: int, checks: int) -> Iterator[Row]:
    """A stream of events read and rendered as every report."""
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "20260101T000000Z-0000"
        run.mkdir()
        with (run / "events.ndjson").open("wb") as stream:
            stream.writelines(
                events.encode(each) for each in events.events_of(large(hosts, checks))
            )
        cost = measure((COMMCHECK, "report", str(run), "--out", place), cwd=ROOT)
        if not (run / "report.html").exists():
            raise SystemExit(cost.output)
        html = (run / "report.html").stat().st_size / 1e3
        junit = sum(path.stat().st_size for path in (run / "junit").iterdir()) / 1e6
    extra = f"HTML {html:.0f} kB, JUnit {junit:.1f} MB"
    yield Row(f"reports of {hosts} hosts x {checks} checks", "commcheck", hosts, cost, extra,
              "< 10 s, < 300 MB, HTML < 10 MB")  # fmt: skip
