"""hccn_tool, npu-smi and /etc/hccn.conf: every recording, and the script that asks each NPU."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.check import Reader
from commcheck.command import Output
from commcheck.counters import Counters
from commcheck.errors import CommandFailed, ParseError, Unjudgeable
from commcheck.formats import (
    hccn,
    hccn_conf,
    hccn_counters,
    hccn_history,
    hccn_optical,
    hccn_port,
    npu_smi,
)
from commcheck.formats.hccn_port import NpuLink, SlavePfc
from tests.collect.shells import SHELLS

RECORDED = Path(__file__).parents[1] / "recorded"


def text(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


def told(reader: Reader[hccn.PerNpu[Any]], name: str, rc: int = 0) -> Any:
    """What the reader says of one NPU that answers as recorded."""
    said = text(f"hccn_tool/{name}")
    answer = f"[npu 5 rc {rc}]\n{said or chr(10)}[end]\n"
    return reader.parse(Output(answer)).of(5)


@pytest.mark.parametrize(
    ("reader", "name", "facts"),
    [
        (hccn_port.LINK, "link-up", NpuLink(True)),
        (hccn_port.LINK, "link-down", NpuLink(False)),
        (hccn_port.NET_HEALTH, "net-health-success", "Success"),
        (hccn_port.NET_HEALTH, "net-health-receive-timeout", "Receive timeout"),
        (hccn_port.NET_HEALTH, "net-health-detect-ip-set", "Detect ip set"),
        (hccn_port.SPEED, "speed-200g", 200_000),
        (hccn_port.SPEED, "speed-unknown", None),
        (hccn_port.ADDRESS, "ip", IPv4Interface("10.20.1.31/24")),
        (hccn_port.ADDRESS, "ip-not-set", None),
        (hccn_port.GATEWAY, "gateway", IPv4Address("10.20.1.1")),
        (hccn_port.GATEWAY, "gateway-not-set", None),
        (hccn_port.NETDETECT, "netdetect", IPv4Address("10.20.1.1")),
        (hccn_port.NETDETECT, "netdetect-unset", None),
        (hccn_port.VNIC, "vnic", IPv4Address("192.4.2.199")),
        (hccn_port.MTU, "mtu-1500", 1500),
        (hccn_port.MTU, "mtu-4200", 4200),
        (hccn_port.SPEED, "speed-100g", 100_000),
        (hccn_port.NET_HEALTH, "net-health-fault", "Fault"),
        (hccn_port.NET_HEALTH, "net-health-init", "Init"),
        (hccn_port.NET_HEALTH, "net-health-socket-fail", "Socket fail"),
        (hccn_port.NET_HEALTH, "net-health-unreachable", "Unreachable"),
        (hccn_port.PFC, "pfc-prio3", (SlavePfc("", frozenset({3})),)),
        (hccn_port.FEC, "fec", "rs"),
        (hccn_port.FEC, "fec-none", "no"),
        (hccn_port.TLS, "tls-off", 0),
        (hccn_port.TLS, "tls-old", 0),
        (hccn_port.TLS, "tls-on-new", 1),
        (hccn_port.TLS, "tls-no-certificate", 0),
        (hccn_port.PFC, "pfc-prio4-good", (SlavePfc("", frozenset({4})),)),
        (hccn_port.PFC, "pfc-off", (SlavePfc("", frozenset()),)),
        (hccn_port.DSCP_TO_TC, "dscp-to-tc-33", ((33, 1),)),
        (hccn_history.LLDP, "lldp-empty", None),
        (hccn_history.LLDP, "lldp", hccn_history.NpuNeighbour("leaf-npu-01", "400GE1/1/5:1")),
        (hccn_optical.OPTICAL, "optical-absent", hccn_optical.NpuOptical("absent")),
        (hccn_optical.OPTICAL, "optical-xsfp-absent-msg", hccn_optical.NpuOptical("absent")),
        (hccn_optical.OPTICAL, "optical-unreachable", hccn_optical.NpuOptical("unreachable")),
    ],
)
def test_recorded(reader: Reader[Any], name: str, facts: object) -> None:
    assert told(reader, name) == facts


@pytest.mark.parametrize("reader", [hccn_port.ADDRESS, hccn_port.GATEWAY, hccn_history.LLDP])
def test_a_tool_that_died_in_silence_is_no_setting_that_is_unset(reader: Reader[Any]) -> None:
    assert reader.parse(Output("[npu 5 rc 0]\n\n[end]\n")).of(5) is None
    for rc in (1, 127, 137, 139):
        with pytest.raises(CommandFailed, match=f"exit code {rc}, and no message"):
            reader.parse(Output(f"[npu 5 rc {rc}]\n\n[end]\n")).of(5)


def test_more_of_the_recordings() -> None:
    slaves = told(hccn_port.PFC, "pfc-bonded-new")
    assert [(each.netdev, set(each.priorities)) for each in slaves] == [
        ("eth0", {4}),
        ("eth1", set()),
    ]
    table = dict(told(hccn_port.DSCP_TO_TC, "dscp-to-tc-all"))
    assert (len(table), table[33], table[26]) == (64, 1, 0)
    good = told(hccn_optical.OPTICAL, "optical-good")
    assert (good.temperature_c, good.rx_limits_mw, good.flags) == (47, (0.1445, 3.5481), ())
    assert good.rx_mw == tuple((lane, 1.0189) for lane in range(4))
    dark = told(hccn_optical.OPTICAL, "optical-low-rx-lane1")
    assert dark.rx_mw[1] == (1, 0.0054)
    assert ("Rx Los Flag", 1) in dark.flags
    copper = told(hccn_optical.OPTICAL, "optical-copper")
    assert (copper.temperature_c, copper.rx_mw, copper.rx_limits_mw) == (None, (), None)
    flaps = told(hccn_history.LINK_STAT, "link-stat")
    assert (flaps.ups, [state for _, state in flaps.changes]) == (6, ["UP", "DOWN"] * 2)
    assert told(hccn_history.LINK_STAT, "link-stat-stable").changes == ((1_324_643, "UP"),)


def test_a_build_without_flags_of_a_lost_lock() -> None:
    short = re.sub(r"^.. LoL Flag.*\n", "", text("hccn_tool/optical-low-rx-lane1"), flags=re.M)
    said = hccn_optical.OPTICAL.parse(Output(f"[npu 5 rc 0]\n{short}[end]\n")).of(5)
    assert said.flags == (("Rx Los Flag", 1),)


def test_one_npu_that_answers_otherwise_leaves_the_others() -> None:
    both = "[npu 0 rc 0]\nlink status: UP\n[npu 1 rc 0]\nlink status: ?\n[end]\n"
    links = hccn_port.LINK.parse(Output(both))
    assert links.of(0) == NpuLink(True)
    with pytest.raises(CommandFailed, match=r"npu1: .*not readable: link status: \?"):
        links.of(1)


def test_losses_of_a_ping_whatever_stands_below() -> None:
    assert hccn_port.loss_percent(text("hccn_tool/hccs-ping-loss")) == 33.33
    assert hccn_port.loss_percent(text("hccn_tool/hccs-ping-ok")) == 0
    assert hccn_port.loss_percent(text("hccn_tool/ping-ok")) == 0
    assert hccn_port.loss_percent(text("hccn_tool/hccs-ping-unsupported")) is None


@pytest.mark.parametrize("name", ["busy", "exec-failed", "permission-denied", "no-device"])
@pytest.mark.parametrize("rc", [0, 1])
def test_a_refusal_is_no_fact(name: str, rc: int) -> None:
    for reader in (hccn_port.LINK, hccn_port.ADDRESS, hccn_history.LLDP, hccn_counters.STAT):
        with pytest.raises(CommandFailed, match="npu5"):
            told(reader, name, rc)


@pytest.mark.parametrize(
    ("reader", "name", "rc"),
    [
        (hccn_port.LINK, "link-loop-8", 0),
        (hccn_port.TLS, "tls-mixed-8", 0),
        (hccn_port.MTU, "cfg-recovery-done", 0),
        (hccn_port.MTU, "libs-missing", 127),
        (hccn_port.MTU, "not-found", 127),
    ],
)
def test_what_is_not_the_answer_of_one_npu_is_refused(
    reader: Reader[Any], name: str, rc: int
) -> None:
    with pytest.raises(Unjudgeable):
        told(reader, name, rc)


def test_tls_of_each_npu() -> None:
    lines = text("hccn_tool/tls-mixed-8").splitlines()
    said = "".join(f"[npu {npu} rc 0]\n{line}\n" for npu, line in enumerate(lines))
    switches = dict(hccn_port.TLS.parse(Output(f"{said}[end]\n")).values)
    assert {npu for npu, on in switches.items() if on} == {6}


@pytest.mark.parametrize("rc", [0, 1, 80])
def test_without_a_certificate_tls_is_off_though_the_tool_calls_it_an_error(rc: int) -> None:
    assert told(hccn_port.TLS, "tls-no-certificate", rc) == 0


def test_counters_that_are_not_there_are_not_zero() -> None:
    new, old = (told(hccn_counters.STAT, name) for name in ("stat-good", "stat-old-910a"))
    assert (len(new.values), len(old.values)) == (48, 46)
    assert new.get("mac_rx_fcs_err_pkt_num") == 0
    assert old.get("mac_rx_fcs_err_pkt_num") is None
    storm = told(hccn_counters.PFC_STAT, "pfc-stat")
    assert storm.get("tx_pfc4_duration_err_cnt") == 2
    assert storm.get("tx_pfc4_duration_time") == 120_331


@settings(max_examples=40)
@given(cut=st.integers(0, 1200), byte=st.characters())
def test_damaged_counters_are_less_or_refused(cut: int, byte: str) -> None:
    whole = f"[npu 0 rc 0]\n{text('hccn_tool/stat-good')}[end]\n"
    facts = hccn_counters.STAT.parse(Output(whole)).of(0)
    for broken in (whole[:cut], whole[:cut] + byte + whole[cut:]):
        try:
            left: Counters = hccn_counters.STAT.parse(Output(broken)).of(0)
        except Unjudgeable:
            continue
        # A digit more is a number more: that no format without a checksum can see.
        assert len(left.values) == len(facts.values) or byte.isdigit()


def test_npu_smi() -> None:
    good = npu_smi.parse(Output(text("npu-smi/info-910b-good")))
    assert (good.version, len(good.chips)) == ("24.1.rc3", 8)
    assert {chip.health for chip in good.chips} == {"OK"}
    assert good.chips[0].pci == "0000:c1:00.0"
    seven = npu_smi.parse(Output(text("npu-smi/info-7-cards")))
    assert [chip.npu for chip in seven.chips] == [0, 1, 3, 4, 5, 6, 7]
    odd = npu_smi.parse(Output(text("npu-smi/info-910b-warning")))
    assert {chip.npu: chip.health for chip in odd.chips if chip.health != "OK"} == {
        3: "Alarm",
        6: "Warning",
    }
    with pytest.raises(CommandFailed, match="-8005"):
        npu_smi.parse(Output(text("npu-smi/not-in-container"), rc=1))


def test_releases_up_to_22_print_no_processes() -> None:
    whole = text("npu-smi/info-910a-22")
    old = npu_smi.parse(Output(whole))
    assert [(chip.npu, chip.health) for chip in old.chips] == [(0, "OK"), (1, "Alarm")]
    (card,) = npu_smi.parse(Output(text("npu-smi/info-310p-22"))).chips
    assert (card.npu, card.physical, card.pci) == (2144, 0, "0000:86:00.0")
    for newer in ("23.0.4", "25", "t22"):
        with pytest.raises(ParseError, match="the table of processes"):
            npu_smi.parse(Output(whole.replace("22.0.4", newer)))
    with pytest.raises(ParseError, match="the table of processes"):
        npu_smi.parse(Output("".join(whole.splitlines(keepends=True)[:-1])))


def test_two_chips_of_one_module() -> None:
    """An A3: one NPU id, two chips, and their physical ids in a column of their own."""
    chips = npu_smi.parse(Output(text("npu-smi/info-a3-good"))).chips
    assert [(chip.npu, chip.chip, chip.physical) for chip in chips[:3]] == [
        (0, 0, 0),
        (0, 1, 1),
        (1, 0, 2),
    ]
    assert [chip.physical for chip in chips] == list(range(16))
    topo = npu_smi.parse_topo(Output(text("npu-smi/topo-a3")))
    assert len(topo.npus) == 16
    assert {word for *_, word in topo.links} == {"SIO", "HCCS_SW"}


def test_the_topology_with_any_indent() -> None:
    plain = text("npu-smi/topo-degraded")
    topo = npu_smi.parse_topo(Output(plain))
    assert [each for each in topo.links if each[2] != "HCCS"] == [
        ("NPU2", "NPU3", "SYS"),
        ("NPU3", "NPU2", "SYS"),
    ]
    for indent in ("\t", ""):
        assert npu_smi.parse_topo(Output(indent + plain.lstrip(" "))) == topo


def test_the_file() -> None:
    conf = hccn_conf.parse(Output(text("hccn_conf/good")))
    assert hccn_conf.kept(conf, 1).gateway == IPv4Address("10.20.2.1")
    extra = hccn_conf.parse(Output(text("hccn_conf/extra-keys")))
    assert hccn_conf.kept(extra, 0).address == IPv4Address("10.20.1.31")
    assert hccn_conf.kept(extra, 7) == hccn_conf.Settings(7)
    gone = "cat: /etc/hccn.conf: No such file or directory\n"
    assert hccn_conf.parse(Output("", gone, 1)) is None
    with pytest.raises(CommandFailed):
        hccn_conf.parse(Output("", "cat: /etc/hccn.conf: Permission denied\n", 1))


# --- the script ---------------------------------------------------------------------------------

TOOL = r"""#!/bin/sh
# Says what lies in a file of the words; busy the times that lie in "busy".
cd "${0%/*}"
n=$(cat busy 2>/dev/null || echo 0)
if [ "$n" -gt 0 ]; then
  echo $((n - 1)) >busy
  echo 'hccn_tool is busy, please try again.'
  exit 0
fi
echo "$LD_LIBRARY_PATH" >libraries
if [ ! -f "$*" ]; then echo 'The device is not exist!'; exit 1; fi
cat "./$*"
"""


def asked(shell: list[str], place: Path, answers: Mapping[str, str], *words: str) -> str:
    place.mkdir(exist_ok=True)
    tool = place / "hccn_tool"
    tool.write_text(TOOL)
    tool.chmod(0o755)
    nap = place / "sleep"
    nap.write_text("#!/bin/sh\necho $1 >>naps\n".replace("naps", str(place / "naps")))
    nap.chmod(0o755)
    for name, said in answers.items():
        (place / name).write_text(said)
    done = subprocess.run(
        [*shell, "-c", hccn.SCRIPT, "hccn_tool", *words],
        env={"PATH": f"{place}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_each_npu_is_asked(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    argv = ["busybox", "sh"] if shell == "busybox" else [shell]
    answers = {
        "-i 0 -speed -g": "Speed: 200000 Mb/s\n",
        "-i 10 -speed -g": "Speed: Unknown!\n",
        "busy": "2",
    }
    said = asked(argv, tmp_path / "at", answers, "0:3:10", "-speed", "-g")
    found = hccn_port.SPEED.parse(Output(said))
    assert (found.values, found.failed) == (
        ((0, 200_000), (10, None)),
        ((3, "The device is not exist!"),),
    )
    assert (tmp_path / "at" / "naps").read_text().split() == ["1", "2"]
    assert "/usr/local/Ascend/driver/lib64" in (tmp_path / "at" / "libraries").read_text()


def test_one_that_stays_busy_is_given_up(tmp_path: Path) -> None:
    said = asked(["sh"], tmp_path / "at", {"busy": "99"}, "0:1", "-mtu", "-g")
    found = hccn_port.MTU.parse(Output(said))
    assert [npu for npu, _ in found.failed] == [0, 1]
    waits = [int(each) for each in (tmp_path / "at" / "naps").read_text().split()]
    assert sum(waits) <= 30


def test_where_a_link_is_down_hccs_is_asked(tmp_path: Path) -> None:
    answers = {
        "-i 0 -link -g": text("hccn_tool/link-up"),
        "-i 1 -link -g": text("hccn_tool/link-down"),
        "-i 2 -link -g": text("hccn_tool/link-down"),
        "-i 0 -vnic -g": text("hccn_tool/vnic"),
        "-i 1 -hccs_ping -g address 192.4.2.199": text("hccn_tool/hccs-ping-ok"),
        "-i 2 -hccs_ping -g address 192.4.2.199": text("hccn_tool/hccs-ping-loss"),
    }
    said = asked(["sh"], tmp_path / "at", answers, "0:1:2", "-link", "-g")
    found = hccn_port.LINK.parse(Output(said))
    assert found.values == (
        (0, NpuLink(True)),
        (1, NpuLink(False, 0.0)),
        (2, NpuLink(False, 33.33)),
    )
    del answers["-i 0 -vnic -g"]
    said = asked(["sh"], tmp_path / "other", answers, "0:1", "-link", "-g")
    assert hccn_port.LINK.parse(Output(said)).of(1) == NpuLink(False)


def test_nothing_is_put_into_the_script() -> None:
    assert re.search(r"\{\w+\}", hccn.SCRIPT) is None


@pytest.mark.parametrize(
    "said",
    [
        "",
        "[npu 0 rc 0]\nlink status: UP\n",
        "link status: UP\n[end]\n",
        "[npu 0 rc 0]\nlink status: UP\n[npu 0 rc 0]\nlink status: DOWN\n[end]\n",
        "[npu 0 rc 0]\nlink status: UP\nlink status: DOWN\n[end]\n",
    ],
)
def test_what_did_not_end_or_says_two_things_is_refused(said: str) -> None:
    with pytest.raises(ParseError):
        hccn_port.LINK.parse(Output(said))
