"""physical.npu-tls-consistent"""

from __future__ import annotations

from typing import Any

from checks.physical.npu_tls_consistent import CHECK, MIXED
from commcheck.model import Finding, Host, Result, Status
from commcheck.peers import compare, placed
from tests.checks.physical.npu_answers import ONE, TWO, told

ON = "dev_id:1, tls switch[1](0:disable, 1:enable), tls alarm time threshold[60]days"


def said(*names: str) -> dict[str, tuple[str, int]]:
    return {"hccn_tool -i N -tls": told(*names)}


def test_alike_on_the_host_is_left_to_the_peers(judged: Any) -> None:
    verdict = judged(CHECK, said("tls-off", "tls-old"), machine=TWO).verdict
    assert verdict.measured["tls"] == "off"
    assert judged(CHECK, said("tls-off"), machine=ONE, npu_tls=0).verdict.status is not Status.FAIL


def test_mixed_on_the_host(judged: Any) -> None:
    verdict = judged(CHECK, said("tls-off", ON), machine=TWO).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, MIXED)
    assert verdict.reason == "TLS is off on npu0, on on npu1; want one value"


def test_declared(judged: Any) -> None:
    verdict = judged(CHECK, said("tls-off"), machine=ONE, npu_tls=1).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, MIXED)


def test_a_host_unlike_its_peers_fails(judged: Any) -> None:
    results = []
    for at, text in enumerate(("tls-off", "tls-off", ON.replace("dev_id:1", "dev_id:0"))):
        host = Host(f"npu-{at}")
        verdict = judged(CHECK, said(text), machine=ONE).verdict
        found = Finding(
            check=CHECK.id, host=host.name, subject="", verdict=placed(verdict, host, "ascend")
        )
        results.append(Result(check=CHECK.id, host=host.name, findings=(found,)))
    worst = {each.host: each.worst.verdict for each in compare([CHECK], results)}
    assert [each.status for each in worst.values()] == [Status.PASS, Status.PASS, Status.FAIL]
    assert "TLS on, 2 of 3 peers have off" in worst["npu-2"].reason


def test_unreadable(judged: Any) -> None:
    assert judged(CHECK, said("dev_id:0, tls on"), machine=ONE).verdict.status is Status.ERROR
