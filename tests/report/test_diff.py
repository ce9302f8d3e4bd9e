"""What is different between two runs, from made-up documents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.model import Bound, Finding, Kind, Result, Status, Verdict
from commcheck.report import changes as changed
from commcheck.report import changes_text, events, html, markdown, replay, text
from commcheck.report.changes import Changes
from commcheck.report.diff import diff, tally
from commcheck.report.document import document
from commcheck.report.record import JOB, Record
from tests.report.runs import healthy, incident, info, plan, result, verdict

Word = tuple[Status, Kind]

PASS, WARN, FAIL = ((status, Kind.NONE) for status in (Status.PASS, Status.WARN, Status.FAIL))
ERROR = (Status.ERROR, Kind.CHECK)
UNDECIDABLE, BUSY, BLOCKED, GATED, WAIVED, NOT_APPLICABLE = (
    (Status.SKIP, kind)
    for kind in (
        Kind.UNDECIDABLE,
        Kind.BUSY,
        Kind.BLOCKED,
        Kind.GATED,
        Kind.WAIVED,
        Kind.NOT_APPLICABLE,
    )
)
WORDS = (PASS, WARN, FAIL, ERROR, UNDECIDABLE, BUSY, BLOCKED, GATED, WAIVED, NOT_APPLICABLE)
CHECK = "physical.pfc-enabled"


def run(run_id: str, cases: dict[str, Word], check: str = CHECK) -> Record:
    """A run of one check; what each host has."""
    results = tuple(result(host, check, verdict(*word)) for host, word in cases.items())
    return Record(
        info=replace(info(), run_id=run_id),
        plan=plan(tuple(cases), (check,)),
        results=results,
        state="complete",
    )


def between(was: dict[str, Word], now: dict[str, Word]) -> Changes:
    return diff(document(run("old", was)), document(run("new", now)))


@pytest.mark.parametrize(
    ("was", "now", "kind", "told"),
    [
        (PASS, PASS, None, ""),
        (PASS, FAIL, "newly-failing", "new"),
        (BLOCKED, FAIL, "newly-failing", "new"),
        (ERROR, FAIL, "newly-failing", "still"),
        (WARN, FAIL, "newly-failing", "new"),
        (FAIL, FAIL, "still-failing", "still"),
        (PASS, ERROR, "newly-unknown", "new"),
        (FAIL, UNDECIDABLE, "newly-unknown", "still"),
        (BUSY, ERROR, "still-unknown", "still"),
        (PASS, WARN, "newly-warned", ""),
        (WARN, WARN, None, ""),
        (FAIL, PASS, "fixed", "fixed"),
        (ERROR, PASS, "fixed", "fixed"),
        (WARN, PASS, "fixed", ""),
        (PASS, GATED, "no-longer-judged", ""),
        (FAIL, BLOCKED, "no-longer-judged", "no longer judged"),
        (FAIL, NOT_APPLICABLE, "no-longer-judged", "no longer judged"),
        (FAIL, WAIVED, "now-waived", "waived"),
        (PASS, WAIVED, "now-waived", "waived"),
        (WARN, WAIVED, "now-waived", ""),
        (WAIVED, WAIVED, None, ""),
        (WAIVED, FAIL, "newly-failing", "new"),
        (WAIVED, PASS, "fixed", "fixed"),
        (NOT_APPLICABLE, PASS, None, ""),
    ],
)
def test_every_way_a_verdict_can_go(was: Word, now: Word, kind: str | None, told: str) -> None:
    found = between({"a": was}, {"a": now})
    assert [each.kind for each in found.changes] == ([kind] if kind else [])
    counts = {word: f"{word} 1 ({CHECK} on a)" in tally(found) for word in
              ("fixed", "still", "new", "waived", "no longer judged")}  # fmt: skip
    assert [word for word, is_told in counts.items() if is_told] == ([told] if told else [])


@given(was=st.sampled_from(WORDS), now=st.sampled_from(WORDS))
@settings(max_examples=60)
def test_worse_is_never_told_as_better(was: Word, now: Word) -> None:
    found = between({"a": was}, {"a": now})
    kinds = {each.kind for each in found.changes}
    assert ("fixed" in kinds) <= (now == PASS)
    assert (found.exit_code == 1) == (now == FAIL != was)
    assert changed.from_json(changed.to_json(found)) == found


def test_only_what_both_asked_is_compared_and_the_rest_is_said() -> None:
    found = between({"a": PASS, "b": FAIL, "gone": FAIL}, {"a": PASS, "b": PASS, "new": FAIL})
    assert (found.compared, found.judged_before, found.judged_now) == (2, 3, 3)
    assert [(each.kind, each.subjects) for each in found.changes] == [
        ("fixed", ("b",)),
        ("no-longer-judged", ("gone",)),
    ]
    assert found.notes == (
        "1 host is in the baseline and not in this run: gone; of them fail gone",
        "1 host is in this run and not in the baseline: new; of them fail new",
    )
    assert found.exit_code == 0
    other = diff(
        document(run("old", {"a": PASS})), document(run("new", {"a": FAIL}, "physical.nic-mtu"))
    )
    assert (other.compared, other.changes) == (0, ())
    assert len(other.notes) == 2


def test_a_failing_host_that_left_the_inventory_is_not_mended() -> None:
    found = between({"a": FAIL, "b": PASS, "c": PASS}, {"b": PASS})
    assert tally(found) == f"fixed 0, still 0, new 0, no longer judged 1 ({CHECK} on a)"
    assert found.notes == ("2 hosts are in the baseline and not in this run: a,c; of them fail a",)


def test_a_job_as_a_whole_is_called_so() -> None:
    found = between({JOB: PASS}, {JOB: FAIL})
    told = "\n".join(changes_text.lines(found, text.Look(True, False, 120)))
    assert "newly failing  the whole job " in told
    assert JOB not in told


def test_what_a_killed_run_never_judged_is_neither_fixed_nor_lost() -> None:
    killed = replace(run("old", {"a": PASS, "b": PASS, "c": FAIL, "d": PASS}), state="incomplete")
    killed = replace(killed, results=killed.results[2:3])
    now = {"a": PASS, "b": FAIL, "c": PASS, "d": NOT_APPLICABLE}
    found = diff(document(killed), document(run("new", now)))
    assert [(each.kind, each.subjects) for each in found.changes] == [
        ("newly-failing", ("b",)),
        ("fixed", ("c",)),
    ]
    assert found.notes == ("the baseline did not end by itself: it never judged 3 cases",)


def test_subjects_of_one_cause_are_one_line_and_hosts_are_counted() -> None:
    good, bad = verdict(Status.PASS), verdict(Status.FAIL)
    records = []
    for each in (good, bad):
        rails = tuple(result(host, CHECK, each, each, good) for host in ("n-2", "n-10"))
        records.append(replace(run("x", {"n-2": PASS, "n-10": PASS}), results=rails))
    found = diff(*map(document, records))
    (change,) = found.changes
    assert change.subjects == ("n-2/mlx5_0", "n-2/mlx5_1", "n-10/mlx5_0", "n-10/mlx5_1")
    assert found.cases("newly-failing") == 2
    assert tally(found) == f"fixed 0, still 0, new 2 ({CHECK} on n-[2,10])"


def test_a_host_with_a_rail_mended_and_one_still_broken_is_still_broken() -> None:
    good, bad = verdict(Status.PASS), verdict(Status.FAIL)
    old = replace(run("old", {"a": FAIL}), results=(result("a", CHECK, bad, bad),))
    new = replace(run("new", {"a": FAIL}), results=(result("a", CHECK, good, bad),))
    assert tally(diff(document(old), document(new))) == f"fixed 0, still 1 ({CHECK} on a), new 0"


def test_since_when_it_fails_is_handed_on() -> None:
    first, second, third = (run(name, {"a": FAIL}) for name in ("1st", "2nd", "3rd"))
    second = replace(second, changes=diff(document(first), document(second)))
    assert [each.since for each in diff(document(second), document(third)).changes] == ["1st"]


def measured(
    run_id: str, status: Status = Status.PASS, wanted: object = 3, **values: Any
) -> Record:
    said = replace(verdict(status), measured=values)
    bounds = (Bound("roce_priority", wanted, "somewhere"),)
    finding = Finding(check=CHECK, host="a", subject="", verdict=said, bounds=bounds)
    one = Result(check=CHECK, host="a", findings=(finding,))
    return replace(run(run_id, {"a": PASS}), results=(one,))


@pytest.mark.parametrize(
    ("was", "now", "moved"),
    [
        (100.0, 109.0, False),
        (100.0, 111.0, True),
        (100.0, 89.0, True),
        (0, 1, True),
        ([3], [], True),
        ([3], [3], False),
        ("550.54", "570.1", True),
        (True, False, True),
        (None, 7, True),
    ],
)
def test_a_value_has_moved_beyond_its_noise(was: object, now: object, moved: bool) -> None:
    found = diff(document(measured("old", v=was)), document(measured("new", v=now)))
    assert bool(found.moved) is moved


def test_how_long_was_looked_and_for_what_is_no_value_of_the_host() -> None:
    old = measured("old", window_s=1.0, rules_judged=["LOG-001"], rules_not_judged={"LOG-013": "x"})
    new = measured("new", window_s=9.0, rules_judged=["LOG-013"], rules_not_judged={})
    assert diff(document(old), document(new)).moved == ()


def test_a_limit_that_changed_is_told() -> None:
    found = diff(document(measured("old", wanted=3)), document(measured("new", wanted=4)))
    (limit,) = found.limits
    assert (limit.name, limit.before, limit.after, limit.hosts) == ("roce_priority", 3, 4, ("a",))
    assert "limit roce_priority was 3, is 4" in dict(changes_text.moved(found))[CHECK]


def with_changes() -> Record:
    """An incident that a fault was mended in, and one came."""
    old = document(incident())
    new = replace(incident(), results=tuple(
        result(each.host, each.check, *[verdict(Status.PASS)] * 8)
        if each.host == "node-0003" and each.check == CHECK else
        result(each.host, each.check, verdict(Status.FAIL, reason="<b>broke</b> ::error::"))
        if each.host == "node-0001" and each.check == CHECK else each
        for each in incident().results
    ))  # fmt: skip
    return replace(new, changes=diff(old, document(new)))


def test_every_report_tells_the_changes() -> None:
    record = with_changes()
    page = html.render(record).decode()
    assert '<h2 id="changes-title"><span data-alt="变化">Changes</span></h2>' in page
    assert '<a href="#changes">' in page
    assert "<b>broke</b>" not in page
    assert "### Changes" in markdown.render(record)
    assert "<b>broke" not in markdown.render(record)
    shown = text.render(record)
    assert "1 newly failing, 1 fixed" in shown
    assert shown.index("newly failing  node-0001") < shown.index("fixed          node-0003")
    assert document(record)["changes"]["counts"]["newly-failing"] == 1
    assert replay.record_from_events(
        [events.encode(each).decode() for each in events.events_of(record)]
    ) == replace(record, changes=changed.from_json(document(record)["changes"]))
    assert 'id="changes"' not in html.render(healthy()).decode()


def test_asking_again_ends_with_what_became_of_it() -> None:
    record = with_changes()
    again = replace(record, info=replace(record.info, settings={"again": "x"}))
    last = text.render(again).rstrip().splitlines()[-1]
    assert last.startswith(f"fixed 1 ({CHECK} on node-0003), still ")
    assert f", new 1 ({CHECK} on node-0001)" in last


def test_a_verdict_of_a_group_is_the_groups() -> None:
    said = Verdict(status=Status.FAIL, reason="slow", cause=verdict(Status.FAIL).cause,
                   remedies=verdict(Status.FAIL).remedies, hosts=("a", "b"))  # fmt: skip
    good, bad = result("@gpu", CHECK, verdict(Status.PASS)), result("@gpu", CHECK, said)
    base = run("old", {"a": PASS, "b": PASS})
    found = diff(
        document(replace(base, results=(*base.results, good))),
        document(replace(base, results=(*base.results, bad))),
    )
    assert [each.subjects for each in found.changes] == [("@gpu",)]


def ruled(run_id: str, **rules: Word) -> Record:
    """What a check of many rules said of one log; ``plain`` is a verdict without a rule."""
    findings = tuple(
        Finding(
            check=CHECK,
            host="a",
            subject="",
            verdict=replace(verdict(*word), rule="" if rule == "plain" else rule),
        )
        for rule, word in rules.items()
    )
    one = Result(check=CHECK, host="a", findings=findings)
    return replace(run(run_id, {"a": PASS}), results=(one,))


@pytest.mark.parametrize(
    ("was", "now", "kinds"),
    [
        ({"plain": PASS}, {"ENV-1": FAIL}, ["newly-failing"]),
        ({"ENV-1": FAIL}, {"plain": PASS}, ["fixed"]),
        ({"ENV-1": FAIL, "ENV-2": FAIL}, {"ENV-1": FAIL}, ["fixed", "still-failing"]),
        ({"ENV-1": FAIL}, {"ENV-2": FAIL}, ["newly-failing", "fixed"]),
        ({"plain": ERROR}, {"ENV-1": FAIL}, ["newly-failing"]),
        ({"ENV-1": FAIL}, {"plain": ERROR}, ["newly-unknown"]),
        ({"ENV-1": WARN}, {"ENV-1": WARN, "plain": PASS}, []),
    ],
)
def test_rules_are_told_apart(was: dict[str, Word], now: dict[str, Word], kinds: list[str]) -> None:
    found = diff(document(ruled("old", **was)), document(ruled("new", **now)))
    assert [each.kind for each in found.changes] == kinds
