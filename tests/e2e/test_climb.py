"""The main job on real sshd hosts, as an operator and Jenkins see it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import junitparser
import pytest

from tests.e2e.conftest import COMMCHECK, Commcheck, answer, recorded
from tests.sshd import SshdFleet, marked

pytestmark = pytest.mark.sshd

Fleets = Callable[..., SshdFleet]

BEHIND_PFC = ("pfc-only-expected", "pause-global-off")
BEHIND_LINK = (
    "nic-mtu",
    "nic-speed",
    "pfc-enabled",
    "rdma-mtu",
    "rdma-port-active",
    "roce-dscp-map",
    "roce-trust-dscp",
    "roce-v2-gid",
    *BEHIND_PFC,
)
BEHIND_PRESENCE = ("nic-link-type", "nic-link-up", "pcie-link", *BEHIND_LINK)
OF_GPUS = ("gpu-driver", "gpu-pcie", "gpudirect", "nvlink-active")
ASKED = ("reachable", "rdma-device-count", *OF_GPUS, *BEHIND_PRESENCE)
"""The checks that these hosts have answers for; the embedded fleet has them for all."""
CHECKS = len(ASKED)


def reach(fleet: SshdFleet) -> list[object]:
    asked = [word for name in (*ASKED, "who", "broken") for word in ("-t", f"*.{name}")]
    return ["run", "-i", fleet.inventory, "--known-hosts", fleet.known_hosts, *asked]


def test_a_healthy_fleet_passes_in_the_inventorys_order(
    commcheck: Commcheck, fleet_of: Fleets
) -> None:
    fleet = fleet_of(8)
    ran = commcheck(*reach(fleet), "-f", 8, "--format", "json", "--junit", "junit")
    assert ran.verdicts() == [], ran.err
    assert ran.code == 0, ran.err
    hosts = list(dict.fromkeys(v["subject"].partition("/")[0] for v in ran.document["verdicts"]))
    assert hosts == fleet.names
    events = (ran.folder / "events.ndjson").read_text()
    assert events.count('"event":"result"') == 8 * CHECKS
    suites = junitparser.JUnitXml.fromfile(str(ran.cwd / "junit/TEST-commcheck-physical.xml"))
    assert (suites.tests, suites.failures, suites.errors) == (8 * CHECKS, 0, 0)
    # One exec and one channel a host, whatever the number of commands.
    assert fleet.count("Starting session: command") == 8
    assert fleet.count("channel 0: new") == 8
    assert fleet.count("channel 1: new") == 0


@pytest.mark.slow
def test_keys_that_are_not_checked_are_told(commcheck: Commcheck, fleet_of: Fleets) -> None:
    fleet = fleet_of(1)
    ran = commcheck("run", "-i", fleet.inventory, "--host-keys", "insecure", "-t", "*.reachable")
    assert ran.code == 0, ran.err
    for name in ("report.html", "results.json"):
        assert "was not checked" in (ran.folder / name).read_text(), name
    assert "was not checked" in ran.out


def test_each_fault_is_found_on_its_host_and_rail_and_nowhere_else(
    commcheck: Commcheck, fleet_of: Fleets
) -> None:
    fleet = fleet_of(5)
    at = fleet.hosts_by_name
    answer(at["gpu0-02"], "mlnx_qos", recorded("mlnx_qos/pfc-off.txt"))
    down = recorded("ethtool/link-down-no-cable.txt")
    good = recorded("ethtool/link-400g-good.txt")
    pause = recorded("ethtool/pause-off.txt")
    at["gpu0-03"].tool(
        "ethtool",
        f"case $1 in ens2np0) cat <<'END'\n{down}END\n;; -a) cat <<'END'\n{pause}END\n"
        f";; *) cat <<'END'\n{good}END\n;; esac",
    )
    fleet.kill(at["gpu0-04"])
    fleet.write_inventory({"gpu0-05": {"commcheck_nics": ["mlx5_0", "mlx5_1", "mlx5_7"]}})
    ran = commcheck(*reach(fleet), "--format", "json")
    assert ran.code == 1
    found = ran.verdicts()
    blocked = "skip/blocked"
    assert sorted(found) == sorted(
        [
            ("gpu0-02/mlx5_0", "physical.pfc-enabled", "fail"),
            ("gpu0-02/mlx5_1", "physical.pfc-enabled", "fail"),
            *(
                (f"gpu0-02/{hca}", f"physical.{name}", blocked)
                for hca in ("mlx5_0", "mlx5_1")
                for name in BEHIND_PFC
            ),
            ("gpu0-03/mlx5_1", "physical.nic-link-up", "fail"),
            *(("gpu0-03/mlx5_1", f"physical.{name}", blocked) for name in BEHIND_LINK),
            ("gpu0-04", "physical.reachable", "error/host"),
            *(
                ("gpu0-04", f"physical.{name}", "skip/gated")
                for name in ("rdma-device-count", *OF_GPUS, *BEHIND_PRESENCE)
            ),
            ("gpu0-05/mlx5_7", "physical.rdma-device-count", "fail"),
            *(("gpu0-05/mlx5_7", f"physical.{name}", blocked) for name in BEHIND_PRESENCE),
        ]
    )
    unreached = [v for v in ran.document["verdicts"] if v["subject"] == "gpu0-04"]
    assert "tcp-refused" in next(v["reason"] for v in unreached if v["status"] == "error")
    verdict = ran.document["summary"]["verdict"]
    assert (verdict["status"], verdict["layer"]) == ("fail", "physical")


def test_faults_that_no_link_light_shows(commcheck: Commcheck, fleet_of: Fleets) -> None:
    fleet = fleet_of(8, variables={"commcheck_line_rate_gbits": 400})
    at = fleet.hosts_by_name
    sysfs = at["gpu0-01"].sys_class / "infiniband" / "mlx5_1"
    (sysfs / "device" / "current_link_width").write_text("8\n")
    small = recorded("ibv_devinfo/roce-mtu-1024.txt")
    at["gpu0-02"].tool("ibv_devinfo", f"sed s/mlx5_0/$2/ <<'END'\n{small}END")
    answer(at["gpu0-03"], "lsmod", recorded("modules/lsmod-no-peermem.txt"))
    answer(at["gpu0-04"], "mlnx_qos", recorded("mlnx_qos/dscp26-remapped.txt"))
    pause, link = recorded("ethtool/pause-global-on.txt"), recorded("ethtool/link-400g-good.txt")
    at["gpu0-05"].tool(
        "ethtool",
        f"if [ $1 = -a ]; then cat <<'END'\n{pause}END\nelse cat <<'END'\n{link}END\nfi",
    )
    slow, off = recorded("ethtool/link-100g-on-400g-port.txt"), recorded("ethtool/pause-off.txt")
    at["gpu0-06"].tool(
        "ethtool",
        f"if [ $1 = -a ]; then cat <<'END'\n{off}END\nelse cat <<'END'\n{slow}END\nfi",
    )
    lost = recorded("nvidia-smi/nvlink-inactive.txt")
    (at["gpu0-07"].folder / "nvidia-smi.nvlink").write_text(lost)
    (at["gpu0-08"].sys_class / "infiniband/mlx5_0/ports/1/link_layer").write_text("InfiniBand\n")
    ran = commcheck(*reach(fleet), "-f", 8, "--format", "json")
    both = ("mlx5_0", "mlx5_1")
    assert sorted(
        (subject, check.removeprefix("physical."))
        for subject, check, what in ran.verdicts()
        if what != "skip/not-applicable"
    ) == sorted(
        [
            ("gpu0-01/mlx5_1", "pcie-link"),
            *((f"gpu0-02/{hca}", "rdma-mtu") for hca in both),
            ("gpu0-03", "gpudirect"),
            *((f"gpu0-04/{hca}", "roce-dscp-map") for hca in both),
            *((f"gpu0-05/{hca}", "pause-global-off") for hca in both),
            *((f"gpu0-06/{hca}", "nic-speed") for hca in both),
            ("gpu0-07", "nvlink-active"),
            *(("gpu0-08/mlx5_0", name) for name in ("nic-link-type", "rdma-port-active")),
            ("gpu0-08/mlx5_0", "rdma-mtu"),
        ]
    ), ran.err


def test_what_a_person_sees(commcheck: Commcheck, fleet_of: Fleets) -> None:
    fleet = fleet_of(3)
    answer(fleet.hosts_by_name["gpu0-02"], "mlnx_qos", recorded("mlnx_qos/pfc-off.txt"))
    ran = commcheck(*reach(fleet), "--no-progress")
    lines = ran.out.rstrip().splitlines()
    assert lines[-1].startswith("FAIL")
    assert "exit 1" in lines[-1]
    assert any("gpu0-02" in line and "physical.pfc-enabled" in line for line in lines)
    assert any("mlnx_qos -i ens1np0 --pfc" in line for line in lines)
    assert "Traceback" not in ran.err


def test_a_missing_tool_on_every_host_is_unknown_and_not_pass(
    commcheck: Commcheck, fleet_of: Fleets
) -> None:
    fleet = fleet_of(2)
    fleet.servers[0].tool("ethtool", "exit 127")
    fleet.servers[1].tool("ethtool", "exit 127")
    ran = commcheck(*reach(fleet), "--format", "json")
    assert ran.code == 3
    assert {(check, what) for _, check, what in ran.verdicts()} == {
        ("physical.nic-link-up", "error/check"),
        ("physical.nic-speed", "error/check"),
        ("physical.pause-global-off", "error/check"),
    }
    above = [v for v in ran.document["verdicts"] if v["check"] == "physical.nic-mtu"]
    assert [v["status"] for v in above] == ["pass"] * 4
    assert all(v["unproven_below"] == ["physical.nic-link-up"] for v in above)


ROOT_CHECK = '''"""Needs root.

Why: to see what a refused sudo does.
Reads: ``id``.
"""

from dataclasses import dataclass

from commcheck.check import Check, Nothing, Reader, passed, reads
from commcheck.command import Command, Output
from commcheck.model import Machine, Verdict, Words


def parse(output: Output) -> str:
    return output.text


ID = Reader("id", (Command(("id",), root=True),), parse)


@dataclass(frozen=True, slots=True)
class Seen:
    who: str = reads(ID)


def judge(seen: Seen, machine: Machine, want: Nothing, limits: Nothing) -> Verdict:
    return passed(seen.who.split()[0])


CHECK = Check(id="{id}", title=Words("x", "x"), subject=Machine, seen=Seen, judge=judge)
'''


def test_a_refused_sudo_is_the_checks_error_and_the_layer_above_is_judged(
    commcheck: Commcheck, fleet_of: Fleets, tmp_path: Path
) -> None:
    fleet = fleet_of(2, user="oncall")
    fleet.tool("sudo", "echo 'sudo: a password is required' >&2; exit 1")
    site = tmp_path / "site"
    (site / "physical").mkdir(parents=True)
    (site / "library").mkdir()
    (site / "physical" / "who.py").write_text(ROOT_CHECK.replace("{id}", "physical.who"))
    above = ROOT_CHECK.replace("{id}", "library.who").replace(", root=True", "")
    (site / "library" / "who.py").write_text(above)
    ran = commcheck(*reach(fleet), "--checks", site, "--format", "json")
    assert ran.code == 3
    assert ran.verdicts() == [(name, "physical.who", "error/check") for name in fleet.names]
    who = [v for v in ran.document["verdicts"] if v["check"] == "library.who"]
    assert [v["status"] for v in who] == ["pass", "pass"]
    assert all(v["unproven_below"] == ["physical.who"] for v in who)


def test_a_site_overrides_a_check_and_the_report_says_so(
    commcheck: Commcheck, fleet_of: Fleets, tmp_path: Path
) -> None:
    fleet = fleet_of(1)
    site = tmp_path / "site" / "physical"
    site.mkdir(parents=True)
    override = ROOT_CHECK.replace("{id}", "physical.gpu-driver").replace(", root=True", "")
    (site / "gpu_driver.py").write_text(override)
    (site / "broken.py").write_text("import no_such_module\n")
    ran = commcheck(*reach(fleet), "--checks", site.parent)
    assert ran.code == 3
    for name in ("summary.md", "report.html", "results.json", "junit/TEST-commcheck-physical.xml"):
        assert "overrides" in (ran.folder / name).read_text(), name
    book = (ran.folder / "runbook.md").read_text()
    assert book.count('<a id="physical-gpu-driver"></a>') == 1
    assert '<a id="physical-broken"></a>' in book
    assert "overrides" in ran.out
    assert "gpu_driver.py" in ran.out
    assert "physical.broken" in ran.out
    assert "no_such_module" in (ran.folder / "results.json").read_text()


@pytest.mark.parametrize(
    ("text", "words", "says"),
    [
        ("", [], "inv.yaml"),
        ("all:\n  hosts:\n\tx: 1\n", [], "inv.yaml:3:1: error"),
        ("all: {hosts: {a: {}, b: {}}}\n", ["-l", "nowhere"], "nowhere"),
        ("all: {hosts: {a: {}, b: {}}}\n", ["-l", "!all"], "selects no host"),
        ("all: {hosts: {a: {ansible_port: x}}}\n", [], "ansible_port"),
        ("all: {hosts: {a: {commcheck_mtu: big}}}\n", [], "commcheck_mtu"),
        ("all: {hosts: {a: {}}}\n", ["nowhere.yaml"], "nowhere.yaml"),
        ("all: {hosts: {a: {}}}\n", ["-t", "physical.nothing"], "physical.nothing"),
    ],
)
def test_wrong_input_contacts_nobody_and_leaves_nothing(
    commcheck: Commcheck, tmp_path: Path, text: str, words: list[str], says: str
) -> None:
    path = tmp_path / "inv.yaml"
    path.write_text(text)
    ran = commcheck("run", "-i", path, *words)
    assert ran.code == 2
    assert says in ran.err
    assert "Traceback" not in ran.err
    assert not (ran.cwd / "reports").exists()


HOSTILE = (
    b"\x1b]0;owned\x07\x1b[31mred\x1b[0m ]]> [[ATTACHMENT|/etc/passwd]] <script>alert(1)</script>\n"
    b"##vso[task.complete]\n::error::x\n\xff\xfe\x00 \xed\xa0\x80 \xe2\x80\xae\n"
)


def test_hostile_output_stays_harmless(commcheck: Commcheck, fleet_of: Fleets) -> None:
    fleet = fleet_of(1)
    server = fleet.servers[0]
    (server.folder / "hostile").write_bytes(HOSTILE * 3)
    for tool in ("ethtool", "mlnx_qos", "nvidia-smi", "dcb"):
        server.tool(tool, f"cat /mnt/{server.folder.name}/hostile; exit 1")
    ran = commcheck(*reach(fleet), "--junit", "junit")
    assert ran.code in (1, 3)
    data = (ran.cwd / "junit/TEST-commcheck-physical.xml").read_bytes()
    text = data.decode()
    assert "[[ATTACHMENT|" not in text
    assert "\x1b" not in text + ran.out + ran.err
    assert not re.search(r"^::", ran.out + ran.err, re.M)
    assert "##vso[" not in ran.out + ran.err
    suites = junitparser.JUnitXml.fromstring(data)
    assert suites.errors + suites.failures > 0


def start(commcheck_words: list[object], cwd: Path) -> subprocess.Popen[str]:
    cwd.mkdir(exist_ok=True)
    return subprocess.Popen(
        [str(word) for word in (COMMCHECK, *commcheck_words)],
        cwd=cwd,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "HOME": str(cwd)},
    )


def run_id_of(cwd: Path) -> str:
    return (cwd / "reports" / "latest").resolve().name


def until(condition: Callable[[], bool], seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.05)


def busy_fleet(fleet_of: Fleets) -> SshdFleet:
    """Two hosts that answer, two that hang in a command which ignores TERM."""
    fleet = fleet_of(4)
    for server in fleet.servers[2:]:
        server.tool("mlnx_qos", "trap '' TERM; while :; do sleep 1; done")
    return fleet


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_writes_the_reports_and_leaves_nothing_running(
    fleet_of: Fleets, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    fleet = busy_fleet(fleet_of)
    cwd = tmp_path / "cwd"
    child = start(reach(fleet), cwd)
    until(lambda: (cwd / "reports/latest/events.ndjson").exists())
    run_id = run_id_of(cwd)
    events = cwd / "reports" / run_id / "events.ndjson"
    until(lambda: events.read_text().count('"event":"host"') == 2)
    until(lambda: len(marked(run_id)) > 2)
    child.send_signal(number)
    out, err = child.communicate(timeout=15)
    assert child.returncode == code, err
    until(lambda: not marked(run_id), 4)
    assert "interrupted" in out.lower()
    xml = cwd / "reports" / run_id / "junit/TEST-commcheck-physical.xml"
    suites = junitparser.JUnitXml.fromfile(str(xml))
    assert (suites.tests, suites.errors) == (4 * CHECKS, 2 * CHECKS)


def test_a_killed_run_is_reported_and_nothing_of_it_lives_on(
    commcheck: Commcheck, fleet_of: Fleets, tmp_path: Path
) -> None:
    fleet = busy_fleet(fleet_of)
    cwd = tmp_path / "cwd"
    child = start(reach(fleet), cwd)
    until(lambda: (cwd / "reports/latest/events.ndjson").exists())
    run_id = run_id_of(cwd)
    events = cwd / "reports" / run_id / "events.ndjson"
    until(lambda: events.read_text().count('"event":"host"') == 2)
    until(lambda: len(marked(run_id)) > 2)
    child.kill()
    child.communicate()
    until(lambda: not marked(run_id), 4)
    ran = commcheck("report", "last", "--format", "json")
    assert ran.code == 3
    assert ran.document["run"]["state"] == "incomplete"
    missing = [v for v in ran.document["verdicts"] if v["status"] == "error"]
    assert {v["subject"] for v in missing} == {"gpu0-03", "gpu0-04"}
    text = commcheck("report", "last")
    assert "killed" in text.out.lower() or "incomplete" in text.out.lower()


def test_a_host_that_hangs_costs_its_deadline_and_keeps_its_answers(
    commcheck: Commcheck, fleet_of: Fleets
) -> None:
    fleet = busy_fleet(fleet_of)
    begun = time.monotonic()
    ran = commcheck(*reach(fleet), "--host-deadline", 4, "--format", "json")
    assert time.monotonic() - begun < 4 + 4
    assert ran.code == 3
    codes = {v["subject"]: v["reason"] for v in ran.document["verdicts"] if v["kind"] == "host"}
    assert set(codes) == {"gpu0-03", "gpu0-04"}
    assert all(reason.startswith("host-deadline") for reason in codes.values())
    mine = [v for v in ran.document["verdicts"] if v["subject"].startswith("gpu0-03/mlx5_0")]
    assert {v["check"].removeprefix("physical."): v["status"] for v in mine} == {
        "rdma-device-count": "pass",
        "nic-link-type": "pass",
        "nic-link-up": "pass",
        "nic-mtu": "pass",
        "nic-speed": "pass",
        "pause-global-off": "pass",
        "pcie-link": "pass",
        "pfc-enabled": "error",
        "pfc-only-expected": "error",
        "rdma-mtu": "error",
        "rdma-port-active": "pass",
        "roce-dscp-map": "error",
        "roce-trust-dscp": "error",
        "roce-v2-gid": "error",
    }
    until(lambda: not marked(ran.folder.name), 4)


def test_this_machine_without_ssh(commcheck: Commcheck) -> None:
    ran = commcheck("run", "-i", "localhost,", "--dry-run")
    assert ran.code == 0
    assert "physical.reachable" in ran.out
    assert not (ran.cwd / "reports").exists()
