"""physical.npu-consistency"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from checks.physical.npu_consistency import CHECK, DRIFT
from commcheck.model import Finding, Host, Result, Status
from commcheck.peers import compare, placed
from tests.checks.physical.npu_answers import TWO

TABLE = Path(__file__).parents[2] / "recorded" / "npu-smi" / "info-910b-good.txt"


def test_one_with_an_older_driver_warns(judged: Any) -> None:
    results = []
    for at, release in enumerate(("24.1.rc3", "24.1.rc3", "23.0.3  ")):
        host = Host(f"npu-{at}")
        text = TABLE.read_text().replace("24.1.rc3", release)
        said = judged(CHECK, {"npu-smi info": (text, 0)}, machine=TWO).verdict
        assert said.measured["models"] == ["910B3"]
        found = Finding(
            check=CHECK.id, host=host.name, subject="", verdict=placed(said, host, "ascend")
        )
        results.append(Result(check=CHECK.id, host=host.name, findings=(found,)))
    worst = {each.host: each.worst.verdict for each in compare([CHECK], results)}
    assert [each.status for each in worst.values()] == [Status.PASS, Status.PASS, Status.WARN]
    assert worst["npu-2"].cause is DRIFT
    assert "release 23.0.3, 2 of 3 peers have 24.1.rc3" in worst["npu-2"].reason


def test_releases_of_the_installers_are_compared_where_there_are_any(judged: Any) -> None:
    def told(cann: tuple[str, int]) -> Mapping[str, object]:
        answers = {"npu-smi info": (TABLE.read_text(), 0), "grep -His": cann}
        measured: Mapping[str, object] = judged(CHECK, answers, machine=TWO).verdict.measured
        return measured

    both = told(("cann/toolkit.txt", 0))
    assert (both["cann"], both["firmware"]) == (["ascend-toolkit 8.0.RC3"], "7.5.0.1.129")
    assert not {"cann", "firmware"} & told(("\n", 2)).keys()
    assert {trait.name for trait in CHECK.peers} >= {"cann", "firmware"}


def test_unreadable(judged: Any) -> None:
    answers = {"npu-smi info": ("garbage\n", 0)}
    assert judged(CHECK, answers, machine=TWO).verdict.status is Status.ERROR
