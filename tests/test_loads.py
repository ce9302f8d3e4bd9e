"""What becomes of what loads show: consequences, batches, and who is closed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checks.physical.collective_pairs import CHECK
from commcheck.check import failed
from commcheck.consequences import explained
from commcheck.counters import Growth
from commcheck.fields import Count
from commcheck.jobs.causes_places import BAD_HOST, BAD_PATH
from commcheck.loads import batches_of, size_of
from commcheck.model import Cause, Finding, Kind, Result, Status, Verdict
from tests.jobs.searches import ran, search

BAD = replace(failed(BAD_HOST, "host gpu-03 fails", host="gpu-03"), hosts=("gpu-03",))
PATH = replace(failed(BAD_PATH, "path gpu-01 - gpu-02"), hosts=("gpu-01", "gpu-02"))


def below(slug: str, host: str = "gpu-03", status: Status = Status.FAIL) -> Result:
    """What a check that looks found there."""
    cause = Cause(slug, BAD_HOST.title, BAD_HOST.meaning, BAD_HOST.remedies)
    verdict = replace(failed(cause, "mlx5_0 is wrong", host=host), status=status)
    finding = Finding(check="physical.some-check", host=host, subject="mlx5_0", verdict=verdict)
    return Result(check="physical.some-check", host=host, findings=(finding,))


def told(verdict: Verdict, result: Result, growth: dict[str, Growth] | None = None) -> Verdict:
    found = search([ran("gpu-01", "gpu-02")], growth=growth)
    return explained(CHECK, verdict, verdict.hosts, found, [result])


def test_a_fail_follows_from_the_cause_below_on_the_same_host() -> None:
    said = told(BAD, below("pcie-lanes-lost"))
    assert (said.status, said.kind) == (Status.SKIP, Kind.BLOCKED)
    assert said.reason == (
        "consequence of physical.some-check (pcie-lanes-lost) on gpu-03 mlx5_0: host gpu-03 fails"
    )
    assert said.cause is BAD_HOST


def test_what_a_waived_cause_brings_is_waived() -> None:
    put_up = below("pcie-lanes-lost")
    (root,) = put_up.findings
    verdict = replace(root.verdict, status=Status.SKIP, kind=Kind.WAIVED)
    said = told(BAD, replace(put_up, findings=(replace(root, verdict=verdict),)))
    assert (said.kind, said.follows) == (Kind.WAIVED, "")


@pytest.mark.parametrize(
    "result",
    [
        below("pcie-lanes-lost", "gpu-01"),
        below("pcie-lanes-lost", status=Status.WARN),
        below("clock-offset"),
    ],
    ids=["another-host", "a-warning", "no-such-edge"],
)
def test_it_stays_a_fail_where_nothing_explains_it(result: Result) -> None:
    assert told(BAD, result) is BAD


def test_a_path_is_explained_by_either_end() -> None:
    assert told(PATH, below("pfc-off", "gpu-02")).kind is Kind.BLOCKED
    assert told(PATH, below("pfc-off", "gpu-04")) is PATH


def test_loss_is_confirmed_or_ruled_out_by_the_counters_of_the_same_minutes() -> None:
    grew = {"gpu-03": Growth(60.0, {"mlx5_0/out_of_sequence": 900, "mlx5_1/out_of_sequence": 100})}
    assert told(BAD, below("pfc-off"), grew).reason.endswith(
        "meanwhile out_of_sequence +1,000 on gpu-03"
    )
    stood = told(BAD, below("pfc-off"), {"gpu-03": Growth(60.0, {})})
    assert stood.status is Status.FAIL
    assert "stood still meanwhile" in stood.reason
    # What is no matter of loss needs no counters.
    assert told(BAD, below("link-down"), {"gpu-03": Growth(60.0, {})}).kind is Kind.BLOCKED
    # Counters that nobody could read speak for neither.
    assert told(BAD, below("pfc-off"), {}).kind is Kind.BLOCKED


@pytest.mark.parametrize(
    ("count", "size"),
    [(None, 40), (Count(3), 3), (Count(25, is_percent=True), 3), (Count(0), 0)],
)
def test_counts_of_hosts(count: Count | None, size: int) -> None:
    assert size_of(count, 10, 40) == size


@pytest.mark.parametrize(
    ("hosts", "serial", "least", "sizes"),
    [
        (5, None, 2, [5]),
        (6, Count(2), 2, [2, 2, 2]),
        # One host alone has no partner: it would be undecided, and the run none the wiser.
        (5, Count(2), 2, [2, 3]),
        (3, Count(50, is_percent=True), 2, [3]),
        (3, Count(1), 2, [3]),
        (4, Count(1), 2, [2, 2]),
        (3, Count(1), 1, [1, 1, 1]),
        (1, Count(1), 2, [1]),
        (0, Count(1), 2, []),
    ],
)
def test_no_batch_is_too_small_for_its_check(
    hosts: int, serial: Count | None, least: int, sizes: list[int]
) -> None:
    names = [f"gpu-{n}" for n in range(hosts)]
    batches = batches_of(names, serial, least)
    assert [len(each) for each in batches] == sizes
    assert [name for each in batches for name in each] == names
