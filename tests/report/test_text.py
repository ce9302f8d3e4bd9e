from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from commcheck.model import Kind, Remedy, Status, Words
from commcheck.report import text
from commcheck.report.lines import NO_EDGE
from commcheck.report.record import Failure, Record
from commcheck.report.words import columns_of
from tests.report.runs import CHECKS, PASS, PFC_OFF, healthy, incident, overridden, result, verdict


def test_what_matters_most_stands_last() -> None:
    lines = text.render(incident(), Path("reports/run-1")).splitlines()
    assert lines[-1] == (
        "FAIL  physical layer, 2 of 7 hosts, 3 not judged in full, 1 not measured,"
        " 4 min 12 s, exit 1"
    )
    assert lines[-2] == "Report:      reports/run-1"
    assert any(
        line == "Fix first:   mlnx_qos -i eth2 --pfc 0,0,0,1,0,0,0,0   on node-[0002-0003]"
        for line in lines
    )
    assert any(line.startswith("physical") and line.endswith("← breaks here") for line in lines)
    rows = [line for line in lines if "✕ physical.pfc-enabled" in line]
    assert rows == [
        "node-[0002-0003]          ✕ physical.pfc-enabled          "
        "PFC off on the RoCE priority: eth2 has PFC on [], want [3]"
    ]


@pytest.mark.parametrize(
    ("record", "last"),
    [
        (healthy(), "PASS  12 hosts, 3.2 s, exit 0"),
        (replace(healthy(), state="incomplete", ended=None), "PASS  12 hosts, INCOMPLETE, exit 0"),
        (
            replace(healthy(), state="interrupted", results=healthy().results[:5]),
            "UNKNOWN  12 hosts, 12 not judged in full, INTERRUPTED, 3.2 s, exit 3",
        ),
        (
            replace(healthy(), state="interrupted", results=healthy().results[:5], signalled=130),
            "UNKNOWN  12 hosts, 12 not judged in full, INTERRUPTED, 3.2 s, exit 130",
        ),
    ],
)
def test_last_lines(record: object, last: str) -> None:
    assert text.render(record).splitlines()[-1] == last  # type: ignore[arg-type]


def test_ascii_for_a_stream_that_shows_no_more() -> None:
    shown = text.render(replace(incident(), notes=("left out …",)), unicode=False)
    assert shown.startswith("note: left out ...\n")
    shown.encode("ascii")
    assert "<- breaks here" in shown
    assert "x physical.pfc-enabled" in shown


def test_colours_only_where_asked() -> None:
    assert "\x1b" not in text.render(incident())
    assert "\x1b[1;31m" in text.render(incident(), color=True)


def test_overrides_are_said() -> None:
    shown = text.render(overridden(healthy()))
    line = "site check physical.reachable from site/reach.py overrides bundled/reach.py\n"
    assert shown.startswith(line)


def test_a_host_cannot_command_the_console() -> None:
    reason = "::error::x\n##vso[task.complete]\x1b[2J ##[group] ##teamcity[x] X_SECRET=hush"
    bad = [result("node-01", check, verdict(Status.FAIL, reason=reason)) for check in CHECKS]
    shown = text.render(replace(healthy(1), results=tuple(bad), notes=(reason, "::set-env::y")))
    for command in ("##vso[", "##[", "##teamcity[", "\x1b", "hush"):
        assert command not in shown
    assert not any(line.lstrip().startswith("::") for line in shown.splitlines())


def test_many_hosts_and_causes_stay_readable() -> None:
    record = healthy(400)
    checks = tuple(f"physical.check-{number}" for number in range(60))
    bad = [
        result(host, check, verdict(Status.ERROR, Kind.CHECK, f"no tool of {check}"))
        for host in record.plan.hosts[::2]
        for check in checks
    ]
    shown = text.render(replace(record, results=(*record.results, *bad)), width=100)
    assert "200 hosts (node-01, ...)" in shown
    assert "... and 20 more causes" in shown
    assert len(shown.splitlines()) < 60
    assert max(map(len, shown.splitlines())) <= 120


FAR = Failure(
    "Unreachable",
    "host-key-unknown",
    "192.0.2.1 port 22 offers ssh-ed25519 SHA256:aaaaaaaaaaaaaaaaaaaaaaaa, and no known_hosts "
    "file has 192.0.2.1",
    "on the host's console, ssh-keygen -lf /etc/ssh/key.pub must print SHA256:aaaa; only if it is "
    "the same: echo '192.0.2.1 ssh-ed25519 AAAA' >> ~/.ssh/known_hosts",
)


def unreached() -> Record:
    """Of eight hosts five could not be reached: of three the key is unknown, and two names are."""
    base = healthy(8)
    far = {f"node-0{n}": replace(FAR, remedy=FAR.remedy.replace("2.1", f"2.{n}")) for n in "678"}
    lost = Failure("Unreachable", "dns", "the name node-01 cannot be resolved", "getent hosts x")
    failures = {**far, "node-01": lost, "node-02": lost}
    results = [each for each in base.results if each.host not in failures]
    for host, failure in failures.items():
        reason = f"{failure.code}: {failure.reason}; {failure.remedy}"
        gone = replace(verdict(Status.ERROR, Kind.HOST, reason), error="Unreachable")
        results.append(result(host, CHECKS[0], gone))
        gated = verdict(Status.SKIP, Kind.GATED, "gated: the host could not be judged")
        results += [result(host, check, gated) for check in base.plan.cases[host][1:]]
    return replace(base, results=tuple(results), failures=failures)


def test_hosts_that_were_not_reached_have_a_line_a_reason_and_what_to_do() -> None:
    lines = text.render(unreached(), width=NO_EDGE).splitlines()
    assert lines[:2] == [
        "node-[01-02]              ? physical.reachable            "
        "dns: the name node-01 cannot be resolved; getent hosts x",
        f"node-[06-08]              ? physical.reachable            host-key-unknown: {FAR.reason}",
    ]
    fix = lines.index("No failure found, but 5 of 8 hosts could not be judged") + 1
    assert lines[fix : fix + 2] == [
        f"Fix first:   {FAR.remedy.replace('2.1', '2.6')}   on node-06   (and 2 like it)",
        "Read:        runbook.md#physical-reachable",
    ]


def test_the_first_step_of_each_further_cause_is_shown() -> None:
    bad = []
    for number in range(1, 6):
        fix = Remedy(f"look-{number}", PFC_OFF.title, PFC_OFF.title)
        one = replace(PFC_OFF, slug=f"c{number}", title=Words(f"Cause {number}", f"原因 {number}"))
        said = replace(verdict(Status.FAIL), cause=one, remedies=(fix,))
        bad.append(result(f"node-0{number}", CHECKS[1 if number < 5 else 5], said))
    record = replace(healthy(8), results=(*healthy(8).results, *bad))
    lines = text.render(record).splitlines()
    first = lines.index("Also:        look-2   on node-02   (Cause 2)")
    assert lines[first + 1 : first + 4] == [
        "Also:        look-3   on node-03   (Cause 3)",
        "Also:        look-4   on node-04   (Cause 4)",
        "             ... and 1 more cause, in the report",
    ]
    assert "另外：       look-2   在 node-02   （原因 2）\n" in text.render(record, lang="zh")


def test_many_hosts_behind_a_step_are_counted_and_never_cut() -> None:
    """Every second of 800: the list of their numbers is no range."""
    base = healthy(800)
    odd = base.plan.hosts[::2]
    bad = [result(host, CHECKS[2], verdict(Status.FAIL)) for host in odd]
    shown = text.render(replace(base, results=(*base.results, *bad)))
    command = PFC_OFF.remedies[0].command
    assert f"Fix first:   {command}   on 400 hosts (node-01, ...)\n" in shown
    some = replace(base, results=(*base.results, *bad[:9]))
    assert f"{command}   on node-[01,03,05,07,09,11,13,15,17]\n" in text.render(some)


def test_words_of_the_ladder_stand_apart_from_its_counts() -> None:
    """Also where the counts are wide, as they are in Chinese and on large fleets."""
    for lang in ("en", "zh"):
        rows = [
            line
            for line in text.render(incident(), lang=lang).splitlines()
            if line.startswith(("library", "通信库层"))
        ]
        assert all(re.search(r" {3}\S+( \S+)*$", row) for row in rows), rows


def test_chinese_lines_keep_to_the_width() -> None:
    for width in (80, 100, 120):
        for line in text.render(incident(), width=width, lang="zh").splitlines():
            if "✕" in line or "?" in line or line.startswith("    "):
                assert columns_of(line) <= width, line


def test_a_remedy_without_a_command_names_the_port() -> None:
    told = Words("Push the plug home.", "插紧线缆。")
    by_foot = replace(PFC_OFF, remedies=(Remedy("", told, told),))
    bad = replace(verdict(Status.FAIL, reason="no link"), cause=by_foot, remedies=by_foot.remedies)
    record = replace(healthy(2), results=(result("node-02", CHECKS[1], PASS, bad),))
    assert "Fix first:   Push the plug home.   on node-02/mlx5_1\n" in text.render(record)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_narrow_terminal_wraps_and_cuts_nothing(width: int) -> None:
    shown = text.render(unreached(), width=width)
    assert "…" not in shown
    rows = [line for line in shown.splitlines() if not line.startswith(("Fix", "Read", "UNKNOWN"))]
    words = " ".join(" ".join(rows).split())
    assert "and no known_hosts file has 192.0.2.1" in words
    assert "No failure found, but 5 of 8 hosts could not be judged" in words
    assert max(map(len, rows)) <= max(width, 60)


def test_what_is_said_of_a_file_is_said_whole() -> None:
    base = healthy(1)
    reason = "exposed communication is 32 % of the step; " * 5 + "certain"
    bad = (
        result("@job", "runtime.xid", verdict(Status.FAIL, reason=reason)),
        result("rank 3", "library.env", verdict(Status.WARN, reason="NCCL_ALGO is set")),
    )
    record = replace(
        base,
        info=replace(base.info, noun="file"),
        plan=replace(base.plan, hosts=("@job", "rank 3")),
        results=bad,
        notes=tuple(f"note {number}" for number in range(9)),
    )
    shown = text.render(record, width=80)
    assert reason in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= 80
    lines = shown.splitlines()
    assert lines[lines.index("! rank 3  library.env: NCCL_ALGO is set") + 1] == (
        "    update the firmware"
    )
    fix = lines.index("Fix first:   mlnx_qos -i eth2 --pfc 0,0,0,1,0,0,0,0")
    assert lines[fix + 1] == "             pauses the priority instead of dropping"
    assert [line for line in lines if "note" in line] == [
        "note: note 0", "note: note 1", "note: note 2", "... and 6 more notes, in the report",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.414, "0.41 s"), (12.34, "12.3 s"), (59.97, "1 min 0 s"), (252.3, "4 min 12 s"),
     (7384, "2 h 3 min")],
)  # fmt: skip
def test_durations(seconds: float, shown: str) -> None:
    assert text.duration(seconds) == shown
