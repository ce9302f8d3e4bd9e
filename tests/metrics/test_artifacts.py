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
from commcheck.xids import FAULTS, XIDS
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


def host(
    name: str, sm: float, nic: float, device: str = "mlx5_0", label: str = "Hostname"
) -> list[dict[str, str]]:
    port = f'instance="{name}:9100",device="{device}",port="1"'
    gpu = f'instance="10.0.0.9:9400",{label}="{name}",gpu="0"'
    return [
        series("DCGM_FI_PROF_SM_ACTIVE", gpu, f"{sm}x40"),
        series("DCGM_FI_DEV_GPU_UTIL", gpu, "100x40"),
        series("node_infiniband_rate_bytes_per_second", port, "50e9x40"),
        series("node_infiniband_port_data_transmitted_bytes_total", port, f"0+{nic * 60:g}x40"),
        series("node_infiniband_port_data_received_bytes_total", port, f"0+{nic * 60:g}x40"),
    ]


def try_rules(
    tmp_path: Path,
    given: list[dict[str, str]],
    minutes: int,
    expected: dict[str, list[str]],
) -> None:
    """By expression the labels that come out of it after so many minutes, each with a 1."""
    test = {
        "interval": "1m",
        "input_series": given,
        "promql_expr_test": [
            {
                "expr": expr,
                "eval_time": f"{minutes}m",
                "exp_samples": [{"labels": f"{{{each}}}", "value": 1} for each in labels],
            }
            for expr, labels in expected.items()
        ],
    }
    document = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}
    file = tmp_path / "test.yml"
    file.write_text(yaml.safe_dump(document))
    done = promtool("test", "rules", file)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_the_rules_find_the_host_that_is_bound_and_no_other(tmp_path: Path) -> None:
    npu = 'instance="npu-01:8082",id="0"'
    given = [
        *host("gpu-01", 0.12, 46e9),
        *host("gpu-02", 0.83, 5e9),
        *host("gpu-03", 0.85, 46e9),
        *host("gpu-04", 0.10, 5e9),
        # Later releases of dcgm-exporter write the label small.
        *host("gpu-05", 0.12, 46e9, label="hostname"),
        # A bond is full when all of its ports are.
        *host("gpu-06", 0.12, 46e9, device="mlx5_bond_0"),
        *host("gpu-07", 0.12, 92e9, device="mlx5_bond_0"),
        *host("gpu-08", 0, 46e9),  # a profiling field that is stuck
        series("npu_chip_info_utilization", npu, "7x40"),
        series("npu_chip_info_bandwidth_tx", npu, "23000x40"),
        series("npu_chip_link_speed", npu, "200000x40"),
    ]
    bound = [f'host="{each}"' for each in ("gpu-01", "gpu-05", "gpu-07", "npu-01")]
    expected = {
        FIRING.format("CommcheckCommunicationBound"): bound,
        FIRING.format("CommcheckAcceleratorsWait"): ['host="gpu-04"'],
    }
    try_rules(tmp_path, given, 35, expected)


@needs_promtool
def test_a_code_that_came_up_is_told_for_an_hour_however_it_is_labelled(tmp_path: Path) -> None:
    codes = {
        'gpu="0"': "0x90 79x90",  # one series for all codes, as up to dcgm-exporter 3.3.5
        'gpu="1",err_code="0"': "0x90 _x90",  # and one for each
        'gpu="1",err_code="79"': "_x90 79x90",
        'gpu="2"': "79x181",  # from before
        'gpu="3"': "0x90 31x90",  # a program's fault
        'gpu="4",pod="a"': "74x90 _x90",  # from before, too: only the pod ended
        'gpu="4",pod=""': "_x90 74x90",
        'gpu="5"': "_x90 62x90",  # no series before the first code
    }
    given = [
        series("DCGM_FI_DEV_XID_ERRORS", f'instance="gpu-01:9400",{labels}', values)
        for labels, values in codes.items()
    ]
    expr = 'count by (gpu, xid) (ALERTS{alertname="CommcheckXid",alertstate="firing"})'
    told = ['gpu="0",xid="79"', 'gpu="1",xid="79"', 'gpu="5",xid="62"']
    try_rules(tmp_path, given, 100, {expr: told})
    try_rules(tmp_path, given, 160, {expr: []})


def test_the_codes_that_are_told_are_those_of_the_check() -> None:
    rule = re.search(r"gpu:commcheck_xid:fault\n(.*?)\n\n", RULES.read_text(), re.DOTALL)
    assert rule
    one = {int(code) for code in re.findall(r"ERRORS == (\d+)", rule[1])}
    ranges = re.findall(r"ERRORS >= (\d+) <= (\d+)", rule[1])
    more = {code for low, high in ranges for code in range(int(low), int(high) + 1)}
    assert one | more == {code for code, xid in XIDS.items() if xid.ask in FAULTS}


@needs_promtool
def test_a_run_that_fails_is_told_once(tmp_path: Path) -> None:
    of = 'instance="ops:9100",playbook="{}"'
    given = [
        series("commcheck_run_exit_code", of.format("default"), "1x5"),
        series("commcheck_verdicts", of.format("default") + ',status="fail",layer="a"', "2x5"),
        series("commcheck_run_exit_code", of.format("stopped"), "130x5"),
        series("commcheck_verdicts", of.format("stopped") + ',status="fail",layer="a"', "2x5"),
        series("commcheck_run_exit_code", of.format("well"), "0x5"),
        series("commcheck_verdicts", of.format("well") + ',status="pass",layer="a"', "2x5"),
    ]
    expr = 'count by (playbook) (ALERTS{alertname="CommcheckFails"})'
    try_rules(tmp_path, given, 3, {expr: ['playbook="default"', 'playbook="stopped"']})


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
