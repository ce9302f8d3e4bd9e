from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace

import pytest

from commcheck.model import Status, Verdict
from commcheck.report import prom
from commcheck.report.record import Record
from tests.report import hostile
from tests.report.runs import PFC_OFF, healthy, incident, info, plan, result

SAMPLE = re.compile(
    r'([a-zA-Z_][a-zA-Z0-9_]*)\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (-?[0-9.e+]+)'
)


def samples(data: bytes) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Read as strictly as the textfile collector does: HELP and TYPE once, before the samples."""
    assert data.endswith(b"\n")
    told: list[str] = []
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for line in data.decode().splitlines():
        if line.startswith("#"):
            _, word, name, *rest = line.split(" ")
            told.append(f"{word} {name}")
            assert word == "HELP" or rest == ["gauge"]
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        assert told[-1] == f"TYPE {match[1]}"
        labels = dict(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', match[2]))
        found.setdefault(match[1], []).append((labels, float(match[3])))
    assert max(Counter(told).values()) == 1
    for each in found.values():
        assert len({tuple(labels.items()) for labels, _ in each}) == len(each)
    return found


@pytest.mark.parametrize(
    "record",
    [
        incident(),
        incident("incomplete"),
        healthy(),
        hostile.record(),
        Record(info(), plan(())),
    ],
)
def test_every_record_is_readable(record: Record) -> None:
    samples(prom.render(record))
    assert prom.render(record) == prom.render(replace(record))


def test_the_numbers_are_those_of_the_run() -> None:
    found = samples(prom.render(incident()))
    assert found["commcheck_run_exit_code"] == [({"playbook": "incident"}, 1.0)]
    assert found["commcheck_run_timestamp_seconds"][0][1] == incident().info.started.timestamp()
    layers = {labels["host"]: value for labels, value in
              found["commcheck_host_first_failing_layer"]}  # fmt: skip
    assert layers == {
        "node-0001": 0,
        "node-0002": 1,
        "node-0003": 1,
        "node-0010": -1,
        "gpu.example.com": -1,
        "node-0011": -1,
        "node-0012": 0,
    }
    hosts = {(labels["check"], labels["status"]): value
             for labels, value in found["commcheck_check_hosts"]}  # fmt: skip
    assert hosts["physical.pfc-enabled", "fail"] == 2
    verdicts = sum(value for _, value in found["commcheck_verdicts"])
    assert verdicts == len(incident().sorted)


def test_bandwidth_is_told_by_host() -> None:
    slow = Verdict(
        status=Status.FAIL,
        reason="slow",
        cause=PFC_OFF,
        remedies=PFC_OFF.remedies,
        measured={"busbw_gbytes": 12.1},
    )
    record = Record(
        info(),
        plan(("a",), ("physical.collective-node",)),
        (result("a", "physical.collective-node", slow),),
    )
    ((labels, value),) = samples(prom.render(record))["commcheck_busbw_gbytes_per_second"]
    assert (labels["host"], value) == ("a", 12.1)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_has_nothing_to_say() -> None:
    data = prom.render(incident())
    command = ["promtool", "check", "metrics"]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")
