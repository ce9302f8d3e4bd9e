"""physical.npu-health"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from checks.physical.npu_health import ALARM, CHECK, WARNING
from commcheck.model import Status
from tests.checks.physical.npu_answers import TWO

TABLE = Path(__file__).parents[2] / "recorded" / "npu-smi" / "info-910b-warning.txt"


def test_all_ok(judged: Any) -> None:
    answers = {"npu-smi info": ("npu-smi/info-910b-good.txt", 0)}
    assert judged(CHECK, answers, machine=TWO).verdict.status is Status.PASS


def test_alarm_fails_and_names_the_chip(judged: Any) -> None:
    answers = {"npu-smi info": ("npu-smi/info-910b-warning.txt", 0)}
    verdict = judged(CHECK, answers, machine=TWO).verdict
    assert (verdict.status, verdict.cause) == (Status.FAIL, ALARM)
    assert verdict.reason == "NPU 3 is Alarm, NPU 6 is Warning; want OK"
    assert verdict.remedies[0].command == "npu-smi info -t health -i 3 -c 0"


def test_the_error_code_is_told(judged: Any) -> None:
    answers = {
        "npu-smi info -t health": ("npu-codes/two-chips.txt", 0),
        "npu-smi info": ("npu-smi/info-910b-warning.txt", 0),
    }
    verdict = judged(CHECK, answers, machine=TWO).verdict
    assert verdict.reason == (
        "NPU 3 is Alarm (81078603: node type=Link, sensor type=Network, event state=Link down), "
        "NPU 6 is Warning; want OK"
    )


def test_warning_alone_warns(judged: Any) -> None:
    text = TABLE.read_text().replace("Alarm", "OK   ")
    verdict = judged(CHECK, {"npu-smi info": (text, 0)}, machine=TWO).verdict
    assert (verdict.status, verdict.cause) == (Status.WARN, WARNING)


def test_unreadable(judged: Any) -> None:
    answers = {"npu-smi info": ("garbage\n", 0)}
    assert judged(CHECK, answers, machine=TWO).verdict.status is Status.ERROR
