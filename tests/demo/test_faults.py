"""Every fault of the fleet is found by its check on its host, and nothing else anywhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import junitparser
import lxml.html
import pytest

from commcheck.check import readings_of
from commcheck.demo.fault import Fault, known_faults
from commcheck.demo.persona import DEFAULT, cast, known_personas
from commcheck.demo.state import HostState, healthy
from commcheck.discover import discover
from commcheck.model import Layer
from tests.demo.instant import climb

LOADS = {one.id for one in discover(cwd=Path()) if one.check.effects}
# What only a run can find, the tests of runs look for.
FAULTS = {name: fault for name, fault in known_faults().items() if fault.check not in LOADS}
RIGHT = ("blocked", "gated", "not-applicable", "not-permitted")

Findings = set[tuple[str, str]]
"""(check, status) of what is neither right nor none of the host's business."""


def is_of_the_way(fault: Fault) -> bool:
    """True where the fault is in how the host is reached and asked, not in what it answers."""
    before, after = healthy(1), fault.change(healthy(1))
    return any(
        getattr(before, name) != getattr(after, name)
        for name in ("reach", "hanging", "flooding", "missing", "sudo")
    )


def findings(verdicts: Iterable[Mapping[str, Any]]) -> dict[str, Findings]:
    """What is found, by host."""
    found: dict[str, Findings] = defaultdict(set)
    for each in verdicts:
        if each["status"] != "pass" and each["kind"] not in RIGHT:
            found[each["subject"].partition("/")[0]].add((each["check"], each["status"]))
    return found


def expected(faults: Mapping[str, Fault]) -> dict[str, Findings]:
    """What each fault is found by, by host."""
    return {
        host: {(fault.check, fault.status), *(blind() if fault.blinds_root else ())}
        for host, fault in faults.items()
    }


def blind() -> Iterable[tuple[str, str]]:
    """The checks of a RoCE host that must read something as root, and how they end without."""
    for one in discover(cwd=Path()):
        if "gpu-roce" not in one.check.platforms:
            continue
        for reading in readings_of(one.check.seen).values():
            ways = reading.reader.readers
            # runtime.xid may be told by a metrics server instead, which the fleet has none of.
            needed = reading.required or one.id == "runtime.xid"
            if needed and ways and all(any(c.root for c in way.commands) for way in ways):
                yield one.id, "error"


def in_junit(folder: Path) -> dict[str, Findings]:
    """Failures and errors of the JUnit files, by host."""
    kinds = {junitparser.Failure: "fail", junitparser.Error: "error"}
    found: dict[str, Findings] = defaultdict(set)
    for path in folder.glob("*.xml"):
        for suite in junitparser.JUnitXml.fromfile(str(path)):
            for case in suite:
                for result in case.result:
                    if type(result) in kinds:
                        host = str(case.classname).rpartition(".")[2]
                        found[host].add((str(case.name), kinds[type(result)]))
    return found


def in_html(path: Path) -> dict[str, str]:
    """Hosts with a failure or an error in the table of the HTML report, with their line."""
    said = {}
    for details in lxml.html.parse(str(path)).iterfind(".//details[@class]"):
        tone = details.get("class").split()[-1]
        if details.get("class").startswith("host ") and tone in ("t-fail", "t-error"):
            said[details.get("id").removeprefix("host-")] = details.find("summary").text_content()
    return said


def wrong_only(found: Mapping[str, Findings]) -> dict[str, Findings]:
    """What JUnit calls a failure or an error."""
    left = {
        host: {each for each in of_host if each[1] in ("fail", "error")}
        for host, of_host in found.items()
    }
    return {host: of_host for host, of_host in left.items() if of_host}


def agree(verdicts: Sequence[Mapping[str, Any]], junit: Path, html: Path) -> None:
    """JUnit and HTML say what the verdicts say."""
    found = wrong_only(findings(verdicts))
    assert in_junit(junit) == found
    said = in_html(html)
    # A host that cannot be told is shown there as well; JUnit calls it skipped.
    unsure = {each["host"] for each in verdicts if each["kind"] == "undecidable"}
    assert said.keys() - unsure == found.keys() - unsure
    for each in verdicts:
        host = each["subject"].partition("/")[0]
        if each["status"] in ("fail", "error") and len(found[host]) == 1:
            assert each["reason"][:60] in said[host]
            break


@pytest.mark.slow
@pytest.mark.parametrize("ascend", [False, True])
def test_every_fault_and_every_persona(ascend: bool, tmp_path: Path) -> None:
    """Each fault on a host of its own, two hosts without, and three of every persona.

    Ascend's in a run of their own: one HTML page shows only so many broken hosts one by one.
    """
    faults = [
        fault
        for name, fault in FAULTS.items()
        if not is_of_the_way(fault) and name.startswith("npu-") is ascend
    ]
    normal = cast(len(faults) + 2)
    broken: list[HostState] = [
        fault.change(host) for fault, host in zip(faults, normal, strict=False)
    ]
    names = [name for name in known_personas() if name.startswith("ascend") is ascend]
    personas = [name for name in names for _ in range(3)]
    others = cast(100 + len(personas), [*[DEFAULT] * 100, *personas])[100:]
    assert climb([*broken, *normal[len(faults) :], *others], tmp_path) == 1
    (run,) = (each for each in tmp_path.glob("2*") if each.is_dir())
    verdicts = json.loads((run / "results.json").read_text())["verdicts"]
    hosts = {host.name: fault for host, fault in zip(broken, faults, strict=True)}
    assert findings(verdicts) == expected(hosts)
    assert not [each for each in verdicts if re.search(r"\{\w+\}", each["remedy"] or "")]
    agree(verdicts, tmp_path / "junit", run / "report.html")
    # What stands above the hardware is judged where a job runs.
    hardware = {
        one.id
        for one in discover(cwd=tmp_path)
        if one.check.layer is Layer.PHYSICAL
        and one.id not in LOADS
        and (one.check.platforms == {"ascend"}) is ascend
    }
    assert hardware <= {each["check"] for each in verdicts if each["status"] == "pass"}


@pytest.mark.slow
def test_the_faults_of_the_way_over_ssh(tmp_path: Path) -> None:
    """These need a real way: and with them two that do not, so that both ways agree."""
    names = [name for name, fault in FAULTS.items() if is_of_the_way(fault)]
    at = {f"gpu-{n:02d}": name for n, name in enumerate((*names, "pfc-off", "packets-lost"), 1)}
    done = subprocess.run(
        [
            *(Path(sys.executable).parent / "commcheck", "demo", "--hosts", str(len(at) + 1)),
            *(word for host, name in at.items() for word in ("--fault", f"{name}@{host}")),
            *("--format", "json", "--junit", "junit"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    verdicts = json.loads(done.stdout)["verdicts"]
    assert findings(verdicts) == expected({host: FAULTS[name] for host, name in at.items()})
    agree(verdicts, tmp_path / "junit", tmp_path / "reports" / "latest" / "report.html")
