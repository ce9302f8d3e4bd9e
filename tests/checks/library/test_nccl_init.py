"""library.nccl-init: what a launched run says is judged as a log is, host by host."""

from __future__ import annotations

from typing import Any

import pytest

from checks.library.nccl_init import CHECK
from commcheck.command import Output
from commcheck.jobs.job import Answered, Member, Ran, Search
from commcheck.jobs.locate import Located
from commcheck.jobs.nccl_init import CAUSES, HOSTS_MOST, Limits, init_job
from commcheck.jobs.outcomes import Run
from commcheck.loads import site_of
from commcheck.model import Accelerator, Host, Kind, Machine, Status
from tests.checks.library.test_log import GOOD, R2, ROWS, Row, of_host
from tests.nccl.made import job, ranks

JOB = init_job()
NOWHERE = Located(culprits=(), good=frozenset(), open=(), unseen=(), paths=0, all_paths=0, runs=0)


def member(name: str, hostname: str = "") -> Member:
    variables = {"ansible_host": "192.0.2.1", "commcheck_nvlink_links": 18}
    host = Host(name, variables)
    gpus = (Accelerator(0, "nvidia"), Accelerator(1, "nvidia"))
    machine = Machine(name, "gpu-roce", hostname=hostname or name, accelerators=gpus)
    return Member(
        host=host,
        machine=machine,
        site=site_of(host, "gpu-roce"),
        address=name,
        launchers=frozenset({"openmpi"}),
        programs={"all_gather_perf": "/opt/all_gather_perf"},
    )


MEMBERS = {"n1": member("n1"), "n2": member("n2")}


def ran(text: str, *, rc: int = 0, members: dict[str, Member] = MEMBERS, **more: Any) -> Ran:
    answered = Answered((Output(text, "", rc),), **more)
    return JOB.read(Run(tuple(members)), members, Limits(), answered)


def said(text: str, host: str, **more: Any) -> list[tuple[Status, str, str]]:
    one = ran(text, **more)
    search = Search(hosts=one.run.hosts, ran=(one,), located=NOWHERE)
    verdicts = CHECK.judge(CHECK.seen(search), Machine(host), MEMBERS["n1"].site, Limits())
    assert isinstance(verdicts, tuple)
    return [(v.status, v.rule, v.reason) for v in verdicts]


def test_the_run_asks_for_everything_that_is_judged() -> None:
    (part,) = JOB.launch(Run(("n1", "n2")), MEMBERS, Limits())
    words = " ".join(part.requests[0].command.argv)
    assert "NCCL_DEBUG=INFO" in words
    assert "NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET,GRAPH" in words
    assert "NCCL_RUN_DIAGNOSTICS=1" in words
    assert "-b 64M -e 64M -f 2 -w 5 -n 1" in words


def test_many_hosts_are_several_runs_of_one_round() -> None:
    names = [f"n{number}" for number in range(2 * HOSTS_MOST + 1)]
    runs = JOB.steps([member(name) for name in names], Limits())(())
    assert [len(run.hosts) for run in runs] == [HOSTS_MOST, HOSTS_MOST, 1]


@pytest.mark.parametrize(
    "row", [row for row in ROWS if not row.rule.startswith("HLOG")], ids=lambda row: row.rule
)
def test_what_a_log_shows_a_run_shows(row: Row) -> None:
    found = {verdict.cause for verdict in ran(row.wrong).verdicts if verdict.cause}
    assert found <= set(CAUSES)
    if not row.given and row.status is Status.FAIL:
        assert row.cause in found


def test_a_healthy_start() -> None:
    reason = "all 4 ranks on 2 hosts came up, network IB, GPU Direct on every rank"
    for host in ("n1", "n2"):
        ((status, rule, text),) = said(GOOD, host)
        assert (status, rule) == (Status.PASS, "LOG-055")
        assert text.startswith(reason)


def test_hosts_are_named_as_the_inventory_does() -> None:
    text = job(ranks(("pod-a", "pod-b")), network="Socket", nics=0)
    members = {"n1": member("n1", "pod-a.cluster"), "n2": member("n2", "pod-b.cluster")}
    (verdict,) = ran(text, members=members).verdicts
    assert verdict.hosts == ("n1", "n2")


def test_a_host_whose_part_is_right() -> None:
    text = GOOD + R2.warn("Duplicate GPU detected : rank 2 and rank 3 both on CUDA device 18000")
    ((status, rule, _),) = said(text, "n2")
    assert (status, rule) == (Status.FAIL, "LOG-040")
    assert said(text, "n1") == [(Status.PASS, "", "its own part is right; LOG-040 on n2")]


@pytest.mark.parametrize(
    ("text", "more", "error"),
    [
        ("", {"problem": "no mpirun"}, "LaunchFailed"),
        ("mpirun: not found\n", {"rc": 127}, "LaunchFailed"),
        (of_host("n1"), {"timed_out": True}, "RunTimedOut"),
    ],
)
def test_a_run_that_proves_nothing(text: str, more: dict[str, Any], error: str) -> None:
    first = ran(text, **more).verdicts[0]
    assert (first.status, first.kind, first.error) == (Status.ERROR, Kind.CHECK, error)


def test_a_host_that_took_no_part() -> None:
    search = Search(hosts=(), ran=(), located=NOWHERE)
    (verdict,) = CHECK.judge(CHECK.seen(search), Machine("n9"), MEMBERS["n1"].site, Limits())  # type: ignore[misc] # a tuple
    assert verdict.kind is Kind.UNDECIDABLE
