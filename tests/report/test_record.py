from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commcheck.diagnose import diagnose
from commcheck.errors import RunFolderError
from commcheck.model import (
    TABLE,
    Bound,
    Cause,
    Evidence,
    Finding,
    Kind,
    Remedy,
    Result,
    Status,
    Verdict,
    Words,
)
from commcheck.report import events, junit, replay, text
from commcheck.report.document import document
from commcheck.report.record import INTERRUPTED, Record
from tests.report.runs import CHECKS, PASS, healthy, incident, info, plan, result

SIMPLE = st.text("abcxyz -_/.0123456789中文", min_size=1, max_size=12).map(
    lambda words: words.strip() or "x"
)
ANY = st.text(max_size=20)
SLOW = [HealthCheck.too_slow]  # a busy machine draws so many texts slowly


def words(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Words]:
    return st.builds(Words, texts, texts)


def results(texts: st.SearchStrategy[str], reasons: st.SearchStrategy[str]) -> Any:
    remedies = st.builds(Remedy, texts, words(texts), words(texts))
    causes = st.builds(
        Cause,
        SIMPLE,
        words(texts),
        words(texts),
        st.lists(remedies, min_size=1, max_size=2).map(tuple),
    )
    numbers = st.one_of(st.integers(-(2**70), 2**70), st.floats(allow_nan=False), texts)
    values = st.recursive(
        st.one_of(st.none(), st.booleans(), numbers), lambda inner: st.lists(inner, max_size=2)
    )
    finite = st.floats(0, 1e6)
    evidence = st.builds(
        Evidence, texts, st.none() | st.integers(0, 255), finite, texts, st.booleans()
    )

    @st.composite
    def one(draw: st.DrawFn) -> Result:
        check = draw(st.sampled_from(CHECKS))
        host = draw(st.sampled_from(["node-0001", "node-0002", "@rack-a"]))
        findings = []
        for _ in range(draw(st.integers(1, 3))):
            status, kind = draw(st.sampled_from(list(TABLE)))
            cause = draw(causes)
            verdict = Verdict(
                status=status,
                kind=kind,
                reason=draw(reasons),
                cause=cause,
                remedies=cause.remedies,
                error=draw(st.sampled_from(["", "ParseError"])),
                measured=draw(st.dictionaries(SIMPLE, values, max_size=2)),
                hosts=draw(st.sampled_from([(), ("node-0001",)])),
                advisory=draw(st.booleans()),
            )
            findings.append(
                Finding(
                    check=check,
                    host=host,
                    subject=draw(texts),
                    verdict=verdict,
                    bounds=tuple(Bound(name, value, "here") for name, value in [(draw(SIMPLE), 3)]),
                    evidence=tuple(draw(st.lists(evidence, max_size=2))),
                )
            )
        return Result(check=check, host=host, findings=tuple(findings), seconds=draw(finite))

    return one()


def reread(record: Record) -> Record:
    return replay.record_from_events(
        events.encode(event).decode("utf-8") for event in events.events_of(record)
    )


@given(st.lists(results(SIMPLE, SIMPLE), max_size=4))
@settings(max_examples=60, suppress_health_check=SLOW)
def test_what_is_written_is_read_back(some: list[Result]) -> None:
    record = Record(info(), plan(("node-0001", "node-0002")), tuple(some), ("a note",))
    again = reread(record)
    finite = all(
        "inf" not in repr(finding.verdict.measured) for each in some for finding in each.findings
    )
    if finite:
        assert again == record
    assert reread(again) == again


@given(st.lists(results(ANY, ANY.filter(str.strip)), max_size=3))
@settings(max_examples=30, suppress_health_check=SLOW)
def test_any_text_survives_writing_and_every_report(some: list[Result]) -> None:
    record = reread(Record(info(), plan(("node-0001", "node-0002")), tuple(some)))
    assert reread(record) == record
    assert record.exit_code in (1, 3)
    junit.render(record)
    events.encode(document(record))
    text.render(record, unicode=False).encode("ascii")


@pytest.mark.parametrize("record", [incident(), incident("interrupted"), incident("incomplete")])
def test_made_up_runs_survive(record: Record) -> None:
    assert reread(record) == record


def stream(record: Record) -> bytes:
    return b"".join(events.encode(event) for event in events.events_of(record))


def lines(data: bytes) -> Iterator[str]:
    return iter(data.decode("utf-8", "replace").split("\n"))


def test_a_killed_run_renders_wherever_it_was_cut() -> None:
    whole = replace(healthy(2), notes=("中文",))
    data = stream(whole)
    first = data.index(b"\n")
    for size in range(first, len(data) - 1, 3):
        record = replay.record_from_events(lines(data[:size]))
        assert record.state == "incomplete"
        assert len(record.results) <= len(whole.results)
        if size % 97 == 0:
            planned = record.plan.size
            assert sum(len(each) for each in record.layers.values()) >= planned
            assert record.exit_code in ((1, 3) if planned else (0, 1, 3))
            junit.render(record)
            text.render(record)
            document(record)
    assert replay.record_from_events(lines(data)) == whole


def test_a_stream_that_was_cut_before_its_first_line_is_no_run() -> None:
    first = stream(incident()).index(b"\n")
    for size in range(first):
        with pytest.raises(RunFolderError):
            replay.record_from_events(lines(stream(incident())[:size]))


@pytest.mark.parametrize(
    "text",
    [
        "hello\nworld\n",
        '{"a": 1}\n',
        "[]\n",
        '{"event":"run","schema":"commcheck.events/2"}\n',
        '{"event":"run","schema":"commcheck.events/1"}\n',
        '{"event":"plan","schema":"commcheck.events/1"}\n',
        '{"event":"run","schema":"commcheck.events/1","started":7}\n',
    ],
)
def test_what_is_no_event_stream_is_refused(text: str) -> None:
    with pytest.raises(RunFolderError):
        replay.record_from_events(text.split("\n"))


@pytest.mark.parametrize(
    "line",
    [
        "half a li",
        '{"event":"result","check":"moon.phase","host":"a","seconds":0,"findings":[]}',
        '{"event":"result","check":"physical.a","host":"a","seconds":0,"findings":[]}',
        '{"event":"end","ended":"yesterday","state":"complete"}',
        '{"event":"end","ended":"2026-11-29T15:04:05Z","state":"superb"}',
        "[" * 100_000,
    ],
)
def test_a_bad_line_in_the_middle_is_refused(line: str) -> None:
    good = stream(incident()).decode().split("\n")
    with pytest.raises(RunFolderError):
        replay.record_from_events([*good[:3], line, *good[3:]])


def test_events_of_a_later_version_are_passed_over() -> None:
    good = stream(incident()).decode().split("\n")
    assert replay.record_from_events([*good[:2], '{"event":"mood"}', *good[2:]]) == incident()


def test_order_is_inventory_then_playbook_whatever_came_first() -> None:
    record = incident()
    shuffled = replace(record, results=record.results[::-1])
    cases = [(each.host, each.check) for each in record.sorted]
    assert cases == [(host, check) for host in record.plan.hosts for check in CHECKS]
    assert [(each.host, each.check) for each in shuffled.sorted] == cases
    group = result("@rack-a", "physical.pfc-enabled", PASS)
    assert replace(record, results=(*record.results, group)).sorted[0] is group


def test_a_case_judged_twice_shows_the_later_result() -> None:
    record = healthy(1)
    later = result("node-01", CHECKS[0], PASS, seconds=9.0)
    assert replace(record, results=(*record.results, later)).sorted[0] is later


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("interrupted", "the run was stopped before this was judged"),
        ("incomplete", "the run was killed before this was judged"),
    ],
)
def test_what_was_planned_and_not_judged_is_an_error(state: Any, reason: str) -> None:
    record = replace(healthy(2), results=healthy(2).results[:3], state=state)
    missing = record.sorted[-1].worst.verdict
    assert (missing.status, missing.kind, missing.error) == (
        Status.ERROR,
        Kind.CHECK,
        INTERRUPTED,
    )
    assert missing.reason == reason
    assert record.exit_code == 3
    assert replace(record, results=healthy(2).results).exit_code == 0


def test_exit_codes() -> None:
    assert healthy().exit_code == 0
    assert incident().exit_code == 1
    advisory = replace(
        healthy(1), results=(incident().sorted[9], *healthy(1).results), plan=healthy(1).plan
    )
    assert advisory.exit_code == 0
    assert replace(advisory, info=info(strict=True)).exit_code == 1


@pytest.mark.parametrize("code", [130, 143])
def test_a_run_that_a_signal_stopped_says_the_code_that_its_process_ended_with(code: int) -> None:
    """Every report repeats it; what was judged is still told by the headline."""
    stopped = replace(incident("interrupted"), signalled=code)
    again = reread(stopped)
    assert again == stopped
    assert (again.exit_code, again.judged_code) == (code, 1)
    assert diagnose(again).status is Status.FAIL
    assert document(again)["run"]["exit_code"] == code


@pytest.mark.parametrize("code", [1, "130", None])
def test_no_other_code_is_that_of_a_signal(code: Any) -> None:
    told = [events.encode(each).decode() for each in events.events_of(incident("interrupted"))]
    end = {**json.loads(told[-1]), "signalled": code}
    with pytest.raises(RunFolderError, match="no exit code of a signal"):
        replay.record_from_events([*told[:-1], json.dumps(end), "{}"])


def test_times_are_utc() -> None:
    when = datetime(2026, 11, 29, 15, 4, 5, tzinfo=UTC)
    assert events.timestamp(when) == "2026-11-29T15:04:05Z"
