"""What monitoring knows of hosts that do not answer over SSH."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from commcheck.metrics import unreached
from commcheck.metrics.fleet import gather
from commcheck.model import Host
from tests.metrics.stub import Reply, send, stub
from tests.metrics.test_api import TIME, matrix

COMMCHECK = Path(sys.executable).parent / "commcheck"


def told(silent_min: Mapping[str, int], xids: Mapping[str, int]) -> Reply:
    """A server whose hosts have been silent for so long, and the last code of each."""

    def reply(handler: BaseHTTPRequestHandler, path: str, form: dict[str, str]) -> None:
        if path.endswith("/query"):
            send(handler, TIME)
            return
        start, end, step = (float(form[each]) for each in ("start", "end", "step"))
        times = [start + step * n for n in range(int((end - start) / step) + 1)]
        series: list[object] = []
        for metric, value in (("SM_ACTIVE", silent_min), ("DCGM_FI_DEV_XID_ERRORS", xids)):
            if metric in form["query"]:
                series += [
                    {
                        "metric": {"Hostname": host, "gpu": "3"},
                        "values": [
                            [when, str(value.get(host, 0))]
                            for when in times
                            if when <= end - 60 * silent
                        ],
                    }
                    for host, silent in silent_min.items()
                ]
        send(handler, json.dumps(matrix(*series)).encode())

    return reply


def test_a_dead_way_is_told_from_a_dead_host() -> None:
    silent = {"gpu-01": 0, "gpu-02": 1, "gpu-03": 17, "gpu-04": 17}
    with stub(told(silent, {"gpu-03": 79, "gpu-04": 79})) as server:
        names = (*silent, "gpu-05")
        hosts = [Host(name, {"commcheck_prometheus_url": server.url}) for name in names]
        fleet = gather([(host, frozenset({"load", "faults"})) for host in hosts], environment={})
        assert list(unreached.told_of(fleet, [*hosts, Host("gpu-06")])) == [
            "not reached, but known to monitoring: gpu-[01-02]: exporters answer from there: sshd "
            "or the way to it is broken, not the machine",
            "not reached, but known to monitoring: gpu-[03-04]: exporters there have been silent "
            "for 17 min: down, or cut off; last XID of a GPU there: 79",
        ]


def test_a_server_that_says_nothing_is_no_evidence() -> None:
    with stub(lambda handler, _path, _form: send(handler, b"no", 500)) as server:
        host = Host("gpu-01", {"commcheck_prometheus_url": server.url})
        fleet = gather([(host, frozenset({"load"}))], environment={})
        assert list(unreached.told_of(fleet, [host])) == []


def test_many_that_differ_are_counted() -> None:
    silent = {f"gpu-{n:02}": n + 2 for n in range(20)}
    with stub(told(silent, {})) as server:
        hosts = [Host(name, {"commcheck_prometheus_url": server.url}) for name in silent]
        fleet = gather([(host, frozenset({"load"})) for host in hosts], environment={})
        lines = list(unreached.told_of(fleet, hosts))
    assert len(lines) == unreached.MOST + 1
    assert lines[-1].endswith("12 more hosts")


def test_a_run_says_so_beside_the_host_that_it_could_not_reach(tmp_path: Path) -> None:
    with stub(told({"gpu-01": 0}, {})) as server:
        (tmp_path / "hosts.ini").write_text(
            "gpu-01 ansible_host=127.0.0.1 ansible_port=1 commcheck_platform=gpu-roce "
            f"commcheck_prometheus_url={server.url}\n"
        )
        only = ("-t", "physical.reachable", "-t", "runtime.comm-bound")
        ran = subprocess.run(
            [COMMCHECK, "run", "-i", "hosts.ini", *only, "--format", "json"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    document = json.loads(ran.stdout)
    assert document["run"]["not_reached"] == {"gpu-01": "tcp-refused"}
    (note,) = (each for each in document["notes"] if "known to monitoring" in each)
    assert "gpu-01: exporters answer" in note
    assert (document["run"]["exit_code"], ran.returncode) == (3, 3)
