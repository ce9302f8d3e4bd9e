"""The rules file and the dashboard that are shipped: accepted by the real tools, and right."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from commcheck.metrics.limits import Limits
from commcheck.report.prom import _HELP
from tests.metrics.prometheus import WHY_NOT

ROOT = Path(__file__).parents[2]
RULES = ROOT / "docs" / "prometheus" / "commcheck.rules.yml"
DASHBOARD = json.loads((ROOT / "docs" / "grafana" / "commcheck.json").read_text())
EXPRESSIONS = [
    target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]
]  # fmt: skip

FIRING = 'count by (host) (ALERTS{{alertname="{}",alertstate="firing"}})'

needs_promtool = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


def promtool(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *words], check=False, capture_output=True, text=True)


@needs_promtool
def test_promtool_accepts_the_rules() -> None:
    done = promtool("check", "rules", RULES)
    assert done.returncode == 0, done.stderr


def series(name: str, labels: str, values: str) -> dict[str, str]:
    return {"series": f"{name}{{{labels}}}", "values": values}


def host(name: str, sm: float, nic: float) -> list[dict[str, str]]:
    port = f'instance="{name}:9100",device="mlx5_0",port="1"'
    gpu = f'instance="10.0.0.9:9400",Hostname="{name}",gpu="0"'
    return [
        series("DCGM_FI_PROF_SM_ACTIVE", gpu, f"{sm}x40"),
        series("DCGM_FI_DEV_GPU_UTIL", gpu, "100x40"),
        series("node_infiniband_rate_bytes_per_second", port, "50e9x40"),
        series("node_infiniband_port_data_transmitted_bytes_total", port, f"0+{nic * 60:g}x40"),
        series("node_infiniband_port_data_received_bytes_total", port, f"0+{nic * 60:g}x40"),
    ]


@needs_promtool
def test_the_rules_find_the_host_that_is_bound_and_no_other(tmp_path: Path) -> None:
    npu = 'instance="npu-01:8082",id="0"'
    test = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    *host("gpu-01", 0.12, 46e9),
                    *host("gpu-02", 0.83, 5e9),
                    *host("gpu-03", 0.85, 46e9),
                    *host("gpu-04", 0.10, 5e9),
                    series("npu_chip_info_utilization", npu, "7x40"),
                    series("npu_chip_info_bandwidth_tx", npu, "23000x40"),
                    series("npu_chip_link_speed", npu, "200000x40"),
                ],
                "promql_expr_test": [
                    {
                        "expr": FIRING.format(name),
                        "eval_time": "35m",
                        "exp_samples": [
                            {"labels": f'{{host="{each}"}}', "value": 1} for each in hosts
                        ],
                    }
                    for name, hosts in (
                        ("CommcheckCommunicationBound", ("gpu-01", "npu-01")),
                        ("CommcheckAcceleratorsWait", ("gpu-04",)),
                    )
                ],
            }
        ],
    }
    file = tmp_path / "test.yml"
    file.write_text(yaml.safe_dump(test))
    done = promtool("test", "rules", file)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_every_expression_of_the_dashboard_is_one(tmp_path: Path) -> None:
    rules = [{"record": f"a:b:{n}", "expr": expr} for n, expr in enumerate(EXPRESSIONS)]
    file = tmp_path / "dashboard.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = promtool("check", "rules", file)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboard_is_one_that_can_be_imported() -> None:
    assert DASHBOARD["id"] is None
    assert DASHBOARD["schemaVersion"] >= 36
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_what_is_shown_of_commcheck_is_what_it_writes() -> None:
    text = RULES.read_text() + json.dumps(EXPRESSIONS)
    named = set(re.findall(r"(?<![:\w])commcheck_[a-z_]+", text))
    assert named
    assert named <= set(_HELP)


def test_the_red_lines_are_those_of_the_check() -> None:
    limits = Limits()
    rules = RULES.read_text()
    assert f"< {limits.compute_low:g}" in rules
    assert f"> {limits.link_high:g}" in rules
