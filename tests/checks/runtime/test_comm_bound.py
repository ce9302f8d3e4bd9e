"""runtime.comm-bound"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checks.runtime.comm_bound import CHECK
from commcheck.check import FLEET
from commcheck.collect.base import Frame, Request
from commcheck.judge import judge_host
from commcheck.metrics.causes import BOUND, RDMA_UNUSED, WAITING
from commcheck.metrics.reading import LOAD_METRICS
from commcheck.model import Finding, Host, Kind, Machine, Rail, Status
from commcheck.plan import Asked, requests

RECORDED = Path(__file__).parents[2] / "recorded" / "prometheus"
RAILS = (Rail(0, "mlx5_0", fabric=True), Rail(1, "mlx5_1", fabric=True))
ONE = Machine("gpu-01", "gpu-roce", rails=RAILS)
URL = {"commcheck_prometheus_url": "http://127.0.0.1:9090"}


def judged(
    text: str | None, rc: int = 0, *, machine: Machine = ONE, **variables: object
) -> Finding:
    host = Host("gpu-01", {**URL, **variables})
    key = Request(LOAD_METRICS.commands[0], FLEET).key
    frame = None if text is None else Frame(key, text.encode(), b"", rc, 0.0, 0.2)
    frames = {} if frame is None else {key: frame}
    (result,) = judge_host(host, [Asked(CHECK)], machine, frames, None, lambda data: data.decode())
    return result.worst


@pytest.mark.parametrize(
    ("name", "status", "cause"),
    [
        ("bound", Status.FAIL, BOUND),
        ("waiting", Status.WARN, WAITING),
        ("tcp", Status.WARN, RDMA_UNUSED),
        ("overlapped", Status.PASS, None),
        ("computing", Status.PASS, None),
    ],
)
def test_recorded_shares(name: str, status: Status, cause: object) -> None:
    finding = judged((RECORDED / f"load-{name}.json").read_text())
    assert (finding.verdict.status, finding.verdict.cause) == (status, cause)
    assert [each.used for each in finding.evidence] == [True]


def test_what_the_server_said_is_the_error() -> None:
    problem = {"server": "http://p", "names": ["gpu-01"], "problem": ["ServerRefused", "401", "x"]}
    verdict = judged(json.dumps(problem), 1).verdict
    assert (verdict.status, verdict.kind, verdict.error) == (
        Status.ERROR,
        Kind.CHECK,
        "ServerRefused",
    )
    assert "401" in verdict.reason


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"series": 1}', "{" * 5000])
def test_a_share_that_is_none(text: str) -> None:
    verdict = judged(text).verdict
    assert (verdict.status, verdict.error) == (Status.ERROR, "ParseError")


@pytest.mark.parametrize("damage", ["0.1200", '"points":31', "[{", "null"])
def test_a_damaged_share_is_refused(damage: str) -> None:
    text = (RECORDED / "load-bound.json").read_text()
    hurt = text.replace(damage, '"NaN"', 1)
    if hurt != text:
        assert judged(hurt).verdict.status is Status.ERROR


def twins(minutes: int, other: str = "GPU-b") -> str:
    """A share in which a second GPU 0 stands for so many minutes."""
    document = json.loads((RECORDED / "load-bound.json").read_text())
    ((labels, values), *_) = document["series"]["sm"]
    late = [None] * (len(values) - minutes) + values[len(values) - minutes :]
    document["series"]["sm"] = [
        [{**labels, "UUID": "GPU-a"}, values],
        [{**labels, "UUID": other}, late],
    ]
    return json.dumps(document)


def test_two_hosts_of_one_name_are_not_judged_as_one() -> None:
    verdict = judged(twins(31)).verdict
    assert (verdict.status, verdict.error) == (Status.ERROR, "TwoHosts")
    assert "has two GPUs 0 of bound at once, GPU-a and GPU-b" in verdict.reason
    assert "commcheck_prometheus_selector" in (verdict.reason)
    # Two exporters on one host, and a GPU that was replaced, are no second host.
    assert judged(twins(31, "GPU-a")).verdict.status is Status.FAIL
    assert judged(twins(5)).verdict.status is Status.FAIL
    # Nor are the GPUs of a host whose numbers a relabelling has dropped.
    assert judged(twins(31).replace('"gpu": "0", ', "")).verdict.status is Status.FAIL


@pytest.mark.parametrize(("platform", "says"), [("gpu-tcp", "TCP"), ("gpu-efa", "EFA")])
def test_where_no_rdma_port_can_tell_none_is_asked_for(platform: str, says: str) -> None:
    document = json.loads((RECORDED / "load-bound.json").read_text())
    document["series"] = {
        name: lines for name, lines in document["series"].items() if not name.startswith("nic")
    }
    verdict = judged(json.dumps(document), machine=Machine("gpu-01", platform)).verdict
    assert verdict.kind is Kind.UNDECIDABLE
    assert says in verdict.reason
    assert "infiniband" not in verdict.reason


def test_efa_that_is_told_wants_only_its_rate() -> None:
    document = json.loads((RECORDED / "load-bound.json").read_text())
    del document["series"]["nic_rate"]
    verdict = judged(json.dumps(document), machine=Machine("gpu-01", "gpu-efa")).verdict
    assert verdict.kind is Kind.UNDECIDABLE
    assert "set commcheck_line_rate_gbits" in verdict.reason


def test_a_rail_that_is_a_bond_has_the_rate_of_its_ports() -> None:
    port = Rail(0, "mlx5_0", bond="bond0")
    rail = Rail(0, "mlx5_0", fabric=True, ports=(port, port))
    text = (RECORDED / "load-bound.json").read_text()
    verdict = judged(text, machine=Machine("gpu-01", "gpu-roce", rails=(rail,))).verdict
    assert "NIC mlx5_0 at 46% of 100 GB/s" in verdict.reason


def test_nothing_recorded_is_unknown() -> None:
    assert judged(None).verdict.status is Status.ERROR


def test_a_host_without_a_server_is_none_of_its_business() -> None:
    finding = judged(None, commcheck_prometheus_url=None)
    assert finding.verdict.kind is Kind.NOT_APPLICABLE


def test_only_a_host_with_a_server_is_asked_about() -> None:
    asked = [Asked(CHECK)]
    assert [str(each.command) for each in requests(Host("gpu-01", URL), ONE, asked)] == [
        "prometheus load"
    ]
    assert requests(Host("gpu-01"), ONE, asked) == ()


def test_thresholds_are_the_operators() -> None:
    text = (RECORDED / "load-waiting.json").read_text()
    limits: dict[str, Any] = {"commcheck_thresholds": {"link_high": 0.05}}
    assert judged(text, **limits).verdict.cause is BOUND
