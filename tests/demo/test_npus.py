"""The rendered answers of the NPUs' tools against the recordings: they are the recording again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from commcheck.command import Output
from commcheck.demo.npu import NpuState, healthy_npus
from commcheck.demo.parts import answers
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import healthy
from commcheck.demo.sysfs.npu import kept
from commcheck.demo.tools import npu_smi as made
from commcheck.formats import hccn_counters, hccn_optical
from commcheck.formats.hccn import per_npu

RECORDED = Path(__file__).parents[1] / "recorded"
HOST = become("ascend-910b", healthy(1), known_personas())
NPUS = list(healthy_npus(1))


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


def said(npu: NpuState, query: str) -> str:
    words = ("hccn_tool", "-i", str(npu.number), *query.split())
    host = replace(HOST, npus=(npu,))
    return next(each.stdout for each in answers(host) if each.argv == words)


def test_npu_smi() -> None:
    assert made.info(NPUS) == recorded("npu-smi/info-910b-good")
    assert made.info(NPUS[:2] + NPUS[3:]) == recorded("npu-smi/info-7-cards")
    odd = {3: "Alarm", 6: "Warning"}
    npus = [replace(npu, health=odd.get(npu.number, "OK")) for npu in NPUS]
    assert made.info(npus) == recorded("npu-smi/info-910b-warning")
    assert made.topo(NPUS) == recorded("npu-smi/topo-good")
    far = [replace(npu, far_hccs=frozenset({3} if npu.number == 2 else ())) for npu in NPUS]
    assert made.topo(far) == recorded("npu-smi/topo-degraded")


def test_hccn_tool() -> None:
    npu = replace(NPUS[0], address="10.20.1.31", mtu_bytes=4200)
    for query, name in {
        "-link -g": "link-up",
        "-net_health -g": "net-health-success",
        "-speed -g": "speed-200g",
        "-ip -g": "ip",
        "-gateway -g": "gateway",
        "-netdetect -g": "netdetect",
        "-pfc -g": "pfc-prio4-good",
        "-dscp_to_tc -g": "dscp-to-tc-all",
        "-mtu -g": "mtu-4200",
        "-fec -g": "fec",
    }.items():
        assert said(npu, query) == recorded(f"hccn_tool/{name}"), query
    assert said(npu, "-tls -g") == recorded("hccn_tool/tls-off").partition("\n")[0] + "\n"
    down = replace(npu, link_up=False, address=None, gateway=None, pfc=frozenset())
    for query, name in {
        "-link -g": "link-down",
        "-speed -g": "speed-unknown",
        "-ip -g": "ip-not-set",
        "-gateway -g": "gateway-not-set",
        "-netdetect -g": "netdetect-unset",
        "-pfc -g": "pfc-off",
        "-lldp -g": "lldp-empty",
    }.items():
        assert said(down, query) == recorded(f"hccn_tool/{name}"), query
    changes = ((616, "UP"), (618, "DOWN"), (1617, "UP"), (1620, "DOWN"))
    told = said(replace(npu, changes=changes), "-link_stat -g").split("\n")
    wanted = recorded("hccn_tool/link-stat").split("\n")
    # The recording's counts go back to before its oldest record.
    assert [line for line in told if "count" not in line] == [
        line for line in wanted if "count" not in line
    ]


def test_what_is_shorter_than_the_recordings_reads_the_same() -> None:
    dark = replace(NPUS[0], rx_mw=(1.0189, 0.0054, 1.0189, 1.0189))
    reader = per_npu("-optical -g", hccn_optical.optical)
    ours, theirs = (
        reader.parse(Output(f"[npu 0 rc 0]\n{text}[end]\n")).of(0)
        for text in (said(dark, "-optical -g"), recorded("hccn_tool/optical-low-rx-lane1"))
    )
    assert ours == theirs
    counts = hccn_counters.stat(said(NPUS[0], "-stat -g"), "")
    assert (
        counts.values.keys() < hccn_counters.stat(recorded("hccn_tool/stat-good"), "").values.keys()
    )
    storm = hccn_counters.pfc_stat(said(NPUS[0], "-pfc_stat -g"), "")
    assert (
        storm.values.keys()
        == hccn_counters.pfc_stat(recorded("hccn_tool/pfc-stat"), "").values.keys()
    )


def test_the_file() -> None:
    npus = [replace(NPUS[n], address=f"10.20.{n + 1}.31") for n in (0, 1)]
    assert "".join(map(kept, npus)) == recorded("hccn_conf/good")
