"""The truth table: what every status and kind means for fold, gate, exit code, JUnit and layer."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commcheck.conclusions import exit_code, layer_word
from commcheck.model import (
    TABLE,
    Cause,
    Finding,
    Kind,
    Remedy,
    Result,
    Status,
    Verdict,
    Words,
    gates,
    row,
)

WORDS = Words("x", "x")
REMEDY = Remedy("true", WORDS, WORDS)
CAUSE = Cause("broken", WORDS, WORDS, (REMEDY,))

Key = tuple[Status, Kind]

#              status, kind                     gates  exit everywhere  JUnit      layer word
TRUTH: list[tuple[Status, Kind, bool, int, int, str, str]] = [
    (Status.FAIL, Kind.NONE, True, 1, 1, "failure", "breaks here"),
    (Status.ERROR, Kind.HOST, True, 3, 3, "error", "not judged"),
    (Status.ERROR, Kind.CHECK, False, 3, 3, "error", "not judged"),
    (Status.WARN, Kind.NONE, False, 0, 0, "warn", "pass, with warnings"),
    (Status.SKIP, Kind.UNDECIDABLE, False, 0, 3, "skipped", "not judged"),
    (Status.SKIP, Kind.BUSY, False, 0, 3, "skipped", "not judged"),
    (Status.SKIP, Kind.BLOCKED, False, 0, 0, "skipped", "not judged"),
    (Status.SKIP, Kind.GATED, False, 0, 0, "skipped", "not climbed"),
    (Status.SKIP, Kind.NOT_PERMITTED, False, 0, 0, "skipped", "not measured"),
    (Status.SKIP, Kind.WAIVED, False, 0, 0, "skipped", "pass, 1 waived"),
    (Status.PASS, Kind.NONE, False, 0, 0, "pass", "pass"),
    (Status.SKIP, Kind.NOT_APPLICABLE, False, 0, 0, "skipped", "not applicable"),
]
ORDER: list[Key] = [(status, kind) for status, kind, *_ in TRUTH]


def finding(key: Key, host: str = "node-01", check: str = "physical.nic-mtu") -> Finding:
    status, kind = key
    verdict = Verdict(
        status=status, kind=kind, reason=f"{status} {kind}", cause=CAUSE, remedies=(REMEDY,)
    )
    return Finding(check=check, host=host, subject="", verdict=verdict)


def result(*keys: Key, host: str = "node-01", check: str = "physical.nic-mtu") -> Result:
    return Result(check=check, host=host, findings=tuple(finding(key, host, check) for key in keys))


def test_the_table_has_every_row_and_no_other() -> None:
    assert set(TABLE) == set(ORDER)
    assert sorted(TABLE, key=lambda key: TABLE[key].rank) == ORDER
    assert len({each.rank for each in TABLE.values()}) == len(TABLE)


@pytest.mark.parametrize(
    ("status", "kind", "stops", "alone", "everywhere", "junit", "word"),
    TRUTH,
    ids=[f"{status} {kind}".strip() for status, kind in ORDER],
)
def test_each_row(
    status: Status, kind: Kind, stops: bool, alone: int, everywhere: int, junit: str, word: str
) -> None:
    key = (status, kind)
    one = result(key)
    decided_elsewhere = result((Status.PASS, Kind.NONE), host="node-02")
    assert gates(one) is stops
    assert exit_code([one]) == everywhere
    assert exit_code([one, decided_elsewhere]) == alone
    assert row(one.worst.verdict).junit == junit
    assert layer_word([one]) == word


@pytest.mark.parametrize(("worse", "better"), list(itertools.combinations(ORDER, 2)))
def test_the_fold_takes_the_worse_of_two(worse: Key, better: Key) -> None:
    for pair in ((worse, better), (better, worse)):
        folded = result(*pair)
        assert (folded.status, folded.kind) == worse
        assert gates(folded) is TABLE[worse].gates


keys = st.lists(st.sampled_from(ORDER), min_size=1, max_size=8)


@given(keys, st.randoms(use_true_random=False))
def test_the_fold_does_not_depend_on_order(some: list[Key], random: object) -> None:
    folded = result(*some)
    shuffled = some[::-1]
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis types it as object
    again = result(*shuffled)
    assert (again.status, again.kind) == (folded.status, folded.kind)
    assert (folded.status, folded.kind) == min(some, key=ORDER.index)
    # Folding in two steps is folding once.
    half = result(*some[: len(some) // 2 + 1])
    rest = some[len(some) // 2 + 1 :]
    twice = result((half.status, half.kind), *rest)
    assert (twice.status, twice.kind) == (folded.status, folded.kind)


@given(keys)
def test_a_fail_wins_over_all_and_nothing_unknown_is_healthy(some: list[Key]) -> None:
    code = exit_code([result(*some)])
    statuses = {status for status, _ in some}
    if Status.FAIL in statuses:
        assert code == 1
    elif Status.ERROR in statuses:
        assert code == 3
    else:
        assert code in (0, 3)
    word = layer_word([result(*some)])
    kinds = {kind for _, kind in some}
    if Status.FAIL in statuses or Status.ERROR in statuses or Kind.GATED in kinds:
        assert word.split(",")[0] != "pass"


@pytest.mark.parametrize("kind", [Kind.BUSY, Kind.UNDECIDABLE])
@pytest.mark.parametrize(
    ("other", "code"),
    [
        ((Status.PASS, Kind.NONE), 0),
        ((Status.WARN, Kind.NONE), 0),
        ((Status.FAIL, Kind.NONE), 1),
        ((Status.SKIP, Kind.WAIVED), 0),  # it was decided, and is put up with
        ((Status.SKIP, Kind.NOT_APPLICABLE), 3),  # says nothing about the undecided host
        ((Status.SKIP, Kind.GATED), 3),
        ((Status.SKIP, Kind.BLOCKED), 3),
        ((Status.SKIP, Kind.NOT_PERMITTED), 3),
        ((Status.SKIP, Kind.BUSY), 3),
        ((Status.SKIP, Kind.UNDECIDABLE), 3),
    ],
)
def test_undecided_counts_only_where_nobody_decided(kind: Kind, other: Key, code: int) -> None:
    undecided = result((Status.SKIP, kind))
    assert exit_code([undecided, result(other, host="node-02")]) == code
    # Another check that was decided does not decide this one.
    elsewhere = result((Status.PASS, Kind.NONE), check="physical.pfc-enabled")
    assert exit_code([undecided, elsewhere]) == 3


@pytest.mark.parametrize("beside", [Status.PASS, Status.WARN])
def test_what_is_right_beside_it_decides_nothing(beside: Status) -> None:
    """A sweep with a warning on small messages, and nothing to hold its 2.8 GB/s against."""
    half = ((beside, Kind.NONE), (Status.SKIP, Kind.UNDECIDABLE))
    assert exit_code([result(*half)]) == 3
    assert exit_code([result(*half), result(*half, host="node-02")]) == 3
    assert exit_code([result(*half), result((Status.PASS, Kind.NONE), host="node-02")]) == 0


@pytest.mark.parametrize(
    ("other", "word"),
    [(Kind.GATED, "not climbed"), (Kind.NOT_PERMITTED, "not measured")],
)
def test_a_layer_in_which_nothing_was_proven_is_no_kind_of_pass(other: Kind, word: str) -> None:
    some = [(Status.SKIP, Kind.NOT_APPLICABLE), (Status.SKIP, other)]
    assert layer_word([result(each) for each in some]) == word
    assert layer_word([result(each) for each in (*some, (Status.PASS, Kind.NONE))]) != word


def test_strict_makes_warnings_count() -> None:
    assert exit_code([result((Status.WARN, Kind.NONE))], strict=True) == 1
    assert exit_code([result((Status.PASS, Kind.NONE))], strict=True) == 0
    assert exit_code([]) == 0
    assert layer_word([]) == "not climbed"


def test_a_verdict_that_no_report_could_show_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        Verdict(status=Status.PASS, reason=" ")
    with pytest.raises(ValueError, match="cause and a remedy"):
        Verdict(status=Status.FAIL, reason="wrong")


def test_strict_makes_a_layer_with_warnings_break() -> None:
    some = [result((Status.WARN, Kind.NONE))]
    assert layer_word(some) == "pass, with warnings"
    assert layer_word(some, strict=True) == "breaks here"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(Status.PASS, Kind.GATED), (Status.ERROR, Kind.NONE), (Status.WARN, Kind.CHECK)],
)
def test_a_verdict_that_no_row_of_the_table_is_for_is_refused(status: Status, kind: Kind) -> None:
    with pytest.raises(ValueError, match="no verdict is"):
        Verdict(status=status, kind=kind, reason="odd")
