from __future__ import annotations

import json

from commcheck.report.document import document
from tests.report.runs import CHECKS, healthy, incident


def test_the_summary_is_what_every_format_shows() -> None:
    found = document(incident())
    assert list(found) == [
        "schema",
        "run",
        "summary",
        "ladder",
        "causes",
        "checks",
        "verdicts",
        "notes",
        "changes",
        "facts",
    ]
    assert found["schema"] == "commcheck.results/1"
    assert found["summary"]["verdict"] == {
        "status": "fail",
        "layer": "physical",
        "headline": "Physical layer is where it breaks: PFC off on the RoCE priority, 2 of 7 hosts",
        "headline_zh": "问题出在物理层：RoCE 优先级未开启 PFC，7 台主机中的 2 台",
        "more": ["3 of 7 hosts could not be judged in full, 1 of them not at all."],
        "hosts": ["node-0002", "node-0003"],
        "cause": "pfc-not-on-roce-priority",
        "remedy": "mlnx_qos -i eth2 --pfc 0,0,0,1,0,0,0,0",
        "proven": [
            "physical: 15 of 28 cases read and right (4 checks), 3 hosts free of fault",
            "library: 3 of 7 cases read and right (1 check), 3 hosts free of fault",
            "runtime: 3 of 7 cases read and right (1 check), 3 hosts free of fault",
        ],
    }
    assert found["summary"]["cases"] == {"pass": 21, "warn": 2, "fail": 2, "error": 2, "skip": 15}
    assert sum(found["summary"]["cases"].values()) == 42
    assert found["run"]["duration_s"] == 252.3
    assert found["run"]["not_reached"] == {"node-0010": "ssh-banner"}
    assert [(rung["layer"], rung["word"]) for rung in found["ladder"]] == [
        ("physical", "breaks here"),
        ("library", "partly judged"),
        ("runtime", "partly judged"),
        ("application", "not climbed"),
    ]


def test_a_verdict_carries_all_that_is_known_of_it() -> None:
    (bad, _) = [each for each in document(incident())["verdicts"] if each["status"] == "fail"]
    assert bad == {
        "check": "physical.pfc-enabled",
        "layer": "physical",
        "subject": "node-0002/mlx5_2",
        "host": "node-0002",
        "hosts": [],
        "status": "fail",
        "kind": "",
        "severity": "blocking",
        "rule": "PFC-001",
        "reason": "eth2 has PFC on [], want [3]",
        "cause": "pfc-not-on-roce-priority",
        "error": None,
        "remedy": "mlnx_qos -i eth2 --pfc 0,0,0,1,0,0,0,0",
        "measured": {"pfc_priorities": [], "rate_gbits": 400.0},
        "threshold": [
            {
                "name": "roce_priority",
                "value": 3,
                "unit": "",
                "source": "inventory/group_vars/gpu.yml:4",
            }
        ],
        "evidence": ["once: mlnx_qos -i eth2", "once: sudo dcb pfc show dev eth2"],
        "unproven_below": [],
        "follows": None,
    }


def test_verdicts_are_in_inventory_and_playbook_order() -> None:
    record = healthy(3)
    order = [(each["host"], each["check"]) for each in document(record)["verdicts"]]
    assert order == [
        (host, check) for host in record.plan.hosts for check in (*CHECKS, "application.buckets")
    ]
    assert document(record)["summary"]["verdict"][
        "headline"
    ] == "All four layers pass on 12 hosts".replace("12", "3")
    json.dumps(document(record), allow_nan=False)
