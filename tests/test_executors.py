"""Hosts that workers visit: what they bring comes to the same, and what they lose is said."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from commcheck.attempts import begin
from commcheck.crew import Answer as Brings
from commcheck.crew import Brought, Crew, Way
from commcheck.deliver import Delivery, progress
from commcheck.discover import FoundCheck, bundled_folder, discover
from commcheck.errors import HostError, Unreachable, UsageError
from commcheck.executors import executor_of
from commcheck.model import Host
from commcheck.plan import Asked, HostPlan
from commcheck.prepare import Choice, prepare
from commcheck.run import Climber
from commcheck.stop import Stop
from tests.cheap import Answer, CheapFleet, Script, healthy_script

COMMCHECK: Final = str(Path(sys.executable).parent / "commcheck")
CHECKS: Final = ("physical.gpu-driver", "physical.nic-mtu")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[FoundCheck, ...]:
    return discover((), cwd=tmp_path_factory.mktemp("empty"))


@pytest.fixture(scope="module")
def script(found: tuple[FoundCheck, ...]) -> Script:
    return healthy_script([each for each in found if each.id in CHECKS])


def words(fleet: CheapFleet, out: Path, *more: str) -> list[str]:
    checks = [word for check in CHECKS for word in ("-t", check)]
    return [COMMCHECK, "run", *fleet.arguments, *checks, "-q", "-o", str(out), *more]


def statuses(out: Path) -> list[tuple[str, str, str]]:
    document = json.loads((out / "latest" / "results.json").read_text())
    return [(each["check"], each["subject"], each["status"]) for each in document["verdicts"]]


def frames(out: Path, host: str) -> list[tuple[str, Any]]:
    lines = (out / "latest" / "frames" / f"{host}.ndjson").read_text().splitlines()
    return [(each["key"], each["stdout"]) for each in map(json.loads, lines)]


@pytest.mark.slow
def test_what_processes_bring_comes_to_the_same(script: Script, tmp_path: Path) -> None:
    (tmp_path / "site_pool.py").write_text(
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from multiprocessing import get_context\n"
        "def two():\n"
        "    return ProcessPoolExecutor(2, get_context('spawn'))\n"
    )
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    with CheapFleet(9, script) as fleet:
        subprocess.run(words(fleet, alone), check=True, capture_output=True, timeout=60)
        subprocess.run(
            words(fleet, shared, "--executor", "site_pool:two"),
            check=True,
            capture_output=True,
            timeout=60,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )
    said = statuses(alone)
    assert said == statuses(shared)
    assert len({subject.partition("/")[0] for _, subject, _ in said}) == 9
    for host in ("node-0001", "node-0009"):
        assert frames(alone, host) == frames(shared, host)


# --- the crew, without hosts --------------------------------------------------------------------


def crew_of(
    found: Sequence[FoundCheck], executor: Executor, deadline_s: float = 5.0, **other: Any
) -> Crew:
    way = Way.of("run", {}, found, (), deadline_s)
    return Crew("tests:pool", executor, replace(way, **other))


def sent_out(crew: Crew, count: int, forks: int = 64) -> tuple[list[str], dict[str, HostError]]:
    """The names of the hosts that something was brought of, and why nothing was of the others."""
    brought: list[str] = []
    lost: dict[str, HostError] = {}
    crew.visit(
        [HostPlan(Host(f"gpu-{n}"), ()) for n in range(count)],
        forks=forks,
        brought=lambda host, _: brought.append(host.name),
        lost=lambda host, error: lost.update({host.name: error}),
        note=lambda _text: None,
        stop=threading.Event(),
    )
    return brought, lost


class Canned(ThreadPoolExecutor):
    """Does not visit: it calls ``answer`` with the hosts of each slice."""

    def __init__(self, answer: Callable[[Sequence[Any]], Any]) -> None:
        super().__init__(4)
        self.answer = answer
        self.out, self.most_hosts = 0, 0
        self.lock = threading.Lock()

    def submit(self, _fn: Any, _way: Any, hosts: Any) -> Future[Any]:  # type: ignore[override]
        def work() -> Any:
            with self.lock:
                self.out += len(hosts)
                self.most_hosts = max(self.most_hosts, self.out)
            try:
                return self.answer(hosts)
            finally:
                with self.lock:
                    self.out -= len(hosts)

        return super().submit(work)


def answered(hosts: Sequence[Any]) -> Any:
    time.sleep(0.002)
    return Brings(tuple(Brought(host.name, (), None) for host, _ in hosts), ())


@pytest.mark.parametrize(("count", "forks"), [(1, 64), (40, 1), (40, 16), (300, 64), (1000, 512)])
def test_every_host_comes_once_and_no_more_are_out_than_forks(
    found: tuple[FoundCheck, ...], count: int, forks: int
) -> None:
    with Canned(answered) as pool:
        brought, lost = sent_out(crew_of(found, pool), count, forks)
    assert sorted(brought) == sorted(f"gpu-{n}" for n in range(count))
    assert not lost
    assert pool.most_hosts <= forks


def test_a_slice_that_fails_costs_its_own_hosts(found: tuple[FoundCheck, ...]) -> None:
    def answer(hosts: Sequence[Any]) -> Any:
        if any(host.name == "gpu-3" for host, _ in hosts):
            raise MemoryError("worker died\nwith a traceback")
        return answered(hosts)

    with Canned(answer) as pool:
        brought, lost = sent_out(crew_of(found, pool), 20)
    assert "gpu-3" in lost
    assert len(lost) <= 3
    assert len(brought) + len(lost) == 20
    assert lost["gpu-3"].code == "worker-lost"
    assert lost["gpu-3"].reason.endswith("failed: MemoryError: worker died")


def test_an_executor_that_takes_nothing_more_costs_the_hosts_that_are_left(
    found: tuple[FoundCheck, ...],
) -> None:
    """As a pool of processes, once one of them was killed."""

    class Breaks(Canned):
        def submit(self, _fn: Any, _way: Any, hosts: Any) -> Future[Any]:  # type: ignore[override]
            if any(host.name == "gpu-9" for host, _ in hosts):
                raise BrokenExecutor("a worker was killed")
            return super().submit(_fn, _way, hosts)

    with Breaks(answered) as pool:
        brought, lost = sent_out(crew_of(found, pool), 30)
    assert "gpu-9" in lost
    assert len(brought) + len(lost) == 30
    assert {error.code for error in lost.values()} == {"worker-lost"}
    assert lost["gpu-9"].reason.endswith("failed: BrokenExecutor: a worker was killed")


def test_workers_that_fall_silent_do_not_hold_up_the_run(
    found: tuple[FoundCheck, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commcheck.crew._SLACK_S", 0.3)
    ends = threading.Event()
    with Canned(lambda _hosts: ends.wait(20)) as pool:
        brought, lost = sent_out(crew_of(found, pool, deadline_s=0.1), 30)
        ends.set()
    assert not brought
    assert len(lost) == 30
    assert {error.code for error in lost.values()} == {"worker-lost"}


def test_a_worker_with_other_checks_visits_nobody(found: tuple[FoundCheck, ...]) -> None:
    digests = {one.id: "0" for one in found[:1]}
    with ThreadPoolExecutor(1) as pool:
        _, lost = sent_out(crew_of(found, pool, digests=digests), 2)
        assert {error.code for error in lost.values()} == {"worker-differs"}
        assert found[0].id in lost["gpu-0"].reason
        _, lost = sent_out(crew_of(found, pool, version="0.0"), 2)
        assert "another commcheck" in lost["gpu-0"].reason


def test_a_host_that_cannot_be_reached_says_so_from_afar(found: tuple[FoundCheck, ...]) -> None:
    host = Host("gpu-1", {"ansible_host": "127.0.0.1", "ansible_port": 1})
    way = Way.of("run", {"retries": 0, "host_deadline_s": 5.0}, found, (), 8.0)
    crew = Crew("tests:pool", ThreadPoolExecutor(1), way)
    seen: list[Brought] = []
    crew.visit(
        [HostPlan(host, (Asked(found[0].check),))],
        forks=4,
        brought=lambda _host, each: seen.append(each),
        lost=lambda _host, error: pytest.fail(str(error)),
        note=lambda _text: None,
        stop=threading.Event(),
    )
    assert seen[0].error is not None
    assert isinstance(seen[0].error, Unreachable)


def test_what_loads_the_fabric_is_never_sent_out(
    found: tuple[FoundCheck, ...], tmp_path: Path
) -> None:
    choice = Choice(
        inventory=("gpu-01,gpu-02,",),
        playbook=bundled_folder("playbooks") / "maintenance.yaml",
        allow=frozenset({"load", "write"}),
    )
    prepared = prepare(choice, cwd=tmp_path)
    loading = {one.id for one in found if one.check.effects}
    planned = {each.check.id for plan in prepared.climb.hosts for each in plan.asked}
    sent: set[str] = set()

    def answer(hosts: Sequence[Any]) -> Any:
        sent.update(word.check for _, words in hosts for word in words)
        gone = Unreachable("refused", "nobody listens")
        return Brings(tuple(Brought(host.name, (), gone) for host, _ in hosts), ())

    attempt = begin(prepared, choice, {}, Delivery(out=tmp_path))
    climber = Climber(
        prepared, attempt.info, attempt.folder, progress(no_progress=True, quiet=True)
    )
    with Canned(answer) as pool:
        record = climber.climb(
            lambda host: pytest.fail(f"{host.name} was visited from here"),
            Stop(climber.note),
            forks=4,
            deadline_s=0.0,
            host_deadline_s=5.0,
            crew=crew_of(found, pool),
        )
    assert record.reached == {"gpu-01": "refused", "gpu-02": "refused"}
    assert planned & loading
    assert not sent & loading
    assert sent | loading >= planned


def test_errors_of_hosts_come_whole_from_another_process() -> None:
    error = pickle.loads(pickle.dumps(Unreachable("refused", "nobody listens", "start sshd")))
    assert (type(error), error.code, error.reason, error.remedy) == (
        Unreachable,
        "refused",
        "nobody listens",
        "start sshd",
    )


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nonsense", "wanted dask://"),
        ("no_such_module:pool", "No module named"),
        ("os:no_such_factory", "has no attribute"),
        ("builtins:dict", "is no Executor"),
    ],
)
def test_a_name_that_leads_to_no_executor_is_a_usage_error(name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why), executor_of(name):
        pass


# --- two real workers of dask -------------------------------------------------------------------


def spoken(log: Path, word: str) -> str:
    """The first line of a log that has the word, once it is there."""
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        for line in log.read_text().splitlines():
            if word in line:
                return line
        time.sleep(0.1)
    raise AssertionError(f"{log.name} never said {word!r}")


def dask(log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    with log.open("wb") as stderr:
        return subprocess.Popen(
            [Path(sys.executable).parent / "dask", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            cwd=log.parent,
        )


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a scheduler, and its two workers."""
    pytest.importorskip("distributed")
    logs = [tmp_path / f"{name}.log" for name in ("scheduler", "worker-1", "worker-2")]
    on = ("--host", "127.0.0.1", "--no-dashboard")
    started = [dask(logs[0], "scheduler", "--port", "0", *on)]
    try:
        line = spoken(logs[0], "tcp://127.0.0.1:")
        address = line[line.index("tcp://") :].split()[0]
        for log in logs[1:]:
            started.append(dask(log, "worker", address, "--nthreads", "2", "--no-nanny", *on))
        for log in logs[1:]:
            spoken(log, "Registered to")
        yield address.replace("tcp://", "dask://"), started[1:]
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_killed_worker_of_dask_loses_no_host(
    scheduler: tuple[str, list[subprocess.Popen[bytes]]], script: Script, tmp_path: Path
) -> None:
    address, (first, _) = scheduler
    command, answer = next(iter(script.answers.items()))
    slow = Answer(answer.stdout, answer.rc, seconds=1.5)
    out = tmp_path / "out"
    with CheapFleet(40, script.with_answers({command: slow})) as fleet:
        process = subprocess.Popen(
            words(fleet, out, "--executor", address, "-f", "16"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        ends = time.monotonic() + 60
        while len(list(out.glob("latest/frames/*.ndjson"))) < 4:  # the first slices are back
            assert time.monotonic() < ends
            time.sleep(0.05)
        os.kill(first.pid, signal.SIGKILL)
        assert process.wait(90) == 0
    said = statuses(out)
    assert {status for _, _, status in said} == {"pass"}
    hosts = [subject for check, subject, _ in said if check == CHECKS[0]]
    assert len(set(hosts)) == 40
    for number in (1, 40):
        keys = [key for key, _ in frames(out, f"node-{number:04d}")]
        assert len(keys) == len(set(keys))


@pytest.mark.slow
def test_no_scheduler_is_one_clear_line(script: Script, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with CheapFleet(1, script) as fleet:
        told = subprocess.run(
            words(fleet, tmp_path / "out", "--executor", "dask://127.0.0.1:1"),
            capture_output=True,
            check=False,
            timeout=60,
        )
    assert told.returncode == 2
    assert b"no scheduler of dask there" in told.stderr
    assert not (tmp_path / "out").exists()
