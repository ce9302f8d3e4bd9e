"""The locator on simulated fabrics: it names the culprits its plan exercised, and nobody else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.jobs import places
from commcheck.jobs.locate import Culprit, Located, locate
from commcheck.jobs.matrix import matrix
from commcheck.jobs.outcomes import Outcome, Run
from commcheck.jobs.pairing import Plan, PlanName, carry_out, next_round, preview
from commcheck.model import Status
from tests.jobs.fabrics import Simulated, leaves, names

RAILS = 8
SIZES = (8, 17, 64, 256)


def searched(
    sim: Simulated, name: PlanName = "pairs", *, rails: int = RAILS, known: bool = False
) -> Located:
    plan = Plan(hosts=sim.hosts, name=name, rails=rails, leaf_of=sim.leaf_of if known else None)
    return carry_out(plan, sim.measure)[0]


def named(located: Located) -> set[str]:
    return {str(culprit) for culprit in located.culprits}


def sizes_of(name: PlanName) -> tuple[int, ...]:
    return {"circle": SIZES[:2], "rails": SIZES[:3]}.get(name, SIZES)


EVERY = [(name, size) for name in get_args(PlanName) for size in sizes_of(name)]


@pytest.mark.parametrize(("name", "size"), EVERY)
def test_nothing_is_bad(name: PlanName, size: int) -> None:
    located = searched(Simulated(names(size)), name)
    assert (located.culprits, located.open, located.unseen) == ((), (), ())
    assert located.good == set(names(size))


@pytest.mark.parametrize(("name", "size"), EVERY)
@pytest.mark.parametrize("which", [0, 1, -1])
def test_one_bad_host(name: PlanName, size: int, which: int) -> None:
    hosts = names(size)
    located = searched(Simulated(hosts, bad_hosts=frozenset({hosts[which]})), name)
    assert named(located) == {f"host {hosts[which]}"}
    assert located.open == ()
    assert located.good == set(hosts) - {hosts[which]}


@pytest.mark.parametrize(("name", "size"), EVERY)
@pytest.mark.parametrize("apart", ["pair", "neighbours", "ends"])
def test_two_bad_hosts(name: PlanName, size: int, apart: str) -> None:
    """Also where they were each other's first partner."""
    hosts = names(size)
    other = {"pair": size // 2, "neighbours": 1, "ends": size - 1}[apart]
    located = searched(Simulated(hosts, bad_hosts=frozenset({hosts[0], hosts[other]})), name)
    assert named(located) == {f"host {hosts[0]}", f"host {hosts[other]}"}


def test_the_proof_says_of_the_partners_that_they_are_good() -> None:
    hosts = names(4)
    sim = Simulated(hosts, bad_hosts=frozenset({hosts[1]}))
    (culprit,) = searched(sim, "pairs", rails=0).culprits
    assert culprit.proof == f"fails with {hosts[3]} and {hosts[2]}, which are good with others"


@pytest.mark.parametrize(("name", "size"), EVERY)
def test_one_bad_rail_of_a_host(name: PlanName, size: int) -> None:
    hosts = names(size)
    located = searched(Simulated(hosts, bad_rails=frozenset({(hosts[1], 3)})), name)
    assert named(located) == {f"host {hosts[1]} rail 3"}


def test_without_their_number_rails_are_not_tried() -> None:
    hosts = names(8)
    located = searched(Simulated(hosts, bad_rails=frozenset({(hosts[1], 3)})), rails=0)
    assert named(located) == {f"host {hosts[1]}"}


@pytest.mark.parametrize("size", SIZES)
def test_a_rail_that_is_bad_on_all_hosts(size: int) -> None:
    located = searched(Simulated(names(size), planes=frozenset({2})), "rails")
    assert [(each.what, each.rail) for each in located.culprits] == [("plane", 2)]


@pytest.mark.parametrize(
    ("name", "size"), [("pairs", 17), ("pairs", 64), ("pairs", 256), ("circle", 17)]
)
def test_a_leaf_whose_uplinks_are_bad(name: PlanName, size: int) -> None:
    hosts = names(size)
    for leaf in ("leaf-0", "leaf-1"):
        sim = Simulated(hosts, leaves(hosts, 8), uplinks=frozenset({leaf}))
        located = searched(sim, name, known=True)
        assert named(located) == {f"leaf {leaf}"}
        assert set(located.good) >= {host for host in hosts if sim.leaf_of[host] == leaf}


@pytest.mark.parametrize(
    ("name", "size"), [("pairs", 17), ("pairs", 64), ("circle", 17), ("bisect", 64)]
)
def test_a_leaf_that_is_bad_itself(name: PlanName, size: int) -> None:
    hosts = names(size)
    sim = Simulated(hosts, leaves(hosts, 8), switches=frozenset({"leaf-1"}))
    assert named(searched(sim, name, known=True)) == {"leaf leaf-1"}


@pytest.mark.parametrize("known", [True, False])
def test_a_bad_host_of_a_known_leaf_is_a_host(known: bool) -> None:
    hosts = names(64)
    sim = Simulated(hosts, leaves(hosts, 8), bad_hosts=frozenset({hosts[9]}))
    assert named(searched(sim, known=known)) == {f"host {hosts[9]}"}


@pytest.mark.parametrize("size", [8, 17])
def test_a_bad_path_is_exact_under_the_circle(size: int) -> None:
    hosts = names(size)
    for a, b in ((0, size // 2), (1, 2), (size - 2, size - 1)):
        pair = frozenset({hosts[a], hosts[b]})
        located = searched(Simulated(hosts, bad_paths=frozenset({pair})), "circle")
        assert [set(each.hosts) for each in located.culprits] == [pair]
        assert located.culprits[0].what == "path"
        assert located.paths == located.all_paths == size * (size - 1) // 2


def test_two_passes_find_the_path_that_they_exercised_and_say_how_many_they_did_not() -> None:
    hosts = names(64)
    seen = frozenset({hosts[0], hosts[32]})
    located = searched(Simulated(hosts, bad_paths=frozenset({seen})))
    assert named(located) == {f"path {hosts[0]} - {hosts[32]}"}
    unseen = frozenset({hosts[1], hosts[2]})
    located = searched(Simulated(hosts, bad_paths=frozenset({unseen})))
    assert located.culprits == ()
    assert located.coverage == "32 of 2016 paths exercised in 32 runs"


@pytest.mark.parametrize(("name", "size"), EVERY)
def test_everything_is_bad(name: PlanName, size: int) -> None:
    located = searched(Simulated(names(size), all_bad=True), name)
    assert named(located) == {"the whole fabric"}


@pytest.mark.parametrize("name", ["pairs", "circle"])
def test_what_fails_only_beside_others_is_no_path(name: PlanName) -> None:
    hosts = names(17)
    pair = frozenset({hosts[0], hosts[8]})
    located = searched(Simulated(hosts, crowded=frozenset({pair})), name)
    (culprit,) = located.culprits
    assert culprit.what == "parallel"
    assert set(culprit.hosts) == pair


def test_two_hosts_cannot_tell_which_one_it_is() -> None:
    located = searched(Simulated(names(2), bad_hosts=frozenset({"gpu-000"})))
    assert located.culprits == ()
    assert [each.run for each in located.open] == [None]
    assert "no third host" in located.open[0].why


def test_undecided_says_which_run_would_decide() -> None:
    hosts = ("a", "b", "c", "d")
    outcomes = [
        Outcome(Run(("a", "b")), good=False),
        Outcome(Run(("c", "d")), good=True),
        Outcome(Run(("a", "c"), alone=True), good=True),
        Outcome(Run(("b", "d"), alone=True), good=False),
    ]
    located = locate(hosts, outcomes)
    # a passed with c; b failed with a and d: two good partners, and alone with one.
    assert named(located) == {"host b"}
    located = locate(hosts, outcomes[:3])
    assert located.culprits == ()
    (question,) = located.open
    assert question.run is not None
    assert set(question.run.hosts) in ({"b", "c"}, {"b", "d"})


def test_a_run_that_proved_nothing_blames_nobody() -> None:
    outcomes = [Outcome(Run(("a", "b")), good=None), Outcome(Run(("c", "d")), good=True)]
    located = locate(("a", "b", "c", "d"), outcomes)
    assert located.culprits == ()
    assert located.unseen == ("a", "b")


@settings(max_examples=40)
@given(
    size=st.integers(4, 24),
    bad=st.sets(st.integers(0, 23), max_size=5),
    name=st.sampled_from(["pairs", "circle", "bisect"]),
)
def test_only_bad_hosts_are_named_and_all_of_them(size: int, bad: set[int], name: PlanName) -> None:
    hosts = names(size)
    wrong = frozenset(hosts[at] for at in bad if at < size)
    located = searched(Simulated(hosts, bad_hosts=wrong), name, rails=0)
    told = {each.hosts[0] for each in located.culprits if each.what == "host"}
    assert told <= wrong
    if {each.what for each in located.culprits} <= {"host"} and not located.open:
        assert told == wrong
    assert located.good == set(hosts) - wrong or any(
        each.what == "fabric" for each in located.culprits
    )


@settings(max_examples=40)
@given(data=st.data(), size=st.integers(3, 8))
def test_no_outcome_at_all_blames_a_host_that_passed(data: st.DataObject, size: int) -> None:
    """Whatever runs are known, in whatever order: a pass clears, and open questions have a run."""
    hosts = names(size)
    ends = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    runs = data.draw(st.lists(st.tuples(ends, st.booleans(), st.booleans()), max_size=12))
    outcomes = [
        Outcome(Run((hosts[a], hosts[b]), alone=alone), good)
        for (a, b), good, alone in runs
        if a != b
    ]
    located = locate(hosts, outcomes)
    passed = {host for outcome in outcomes if outcome.good for host in outcome.run.hosts}
    assert passed == located.good
    for culprit in located.culprits:
        if culprit.what == "host":
            assert culprit.hosts[0] not in passed
        if culprit.what == "path":
            assert set(culprit.hosts) <= passed
    assert places.verdicts(hosts, located, outcomes)


def test_plans_cost_what_their_preview_says() -> None:
    plan = Plan(hosts=names(17), rails=8)
    shown = preview(plan)
    assert shown.runs[0] == 9
    assert shown.rounds[0] == 2
    assert "9 runs in 2 rounds, about 90 s" in shown.lines[0]
    assert "gpu-000 + gpu-008" in shown.lines[2]
    assert preview(Plan(hosts=names(64))).rounds[0] == 1
    assert preview(Plan(hosts=names(16), name="circle")).rounds[0] == 15
    assert preview(Plan(hosts=names(64), name="bisect")).runs[0] == 1
    assert preview(Plan(hosts=names(64), name="rails", rails=8)).runs[0] == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"hosts": ("a",)},
        {"hosts": ("a", "a")},
        {"hosts": ("a", "b"), "name": "rails"},
    ],
)
def test_a_plan_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="plan"):
        Plan(**wrong)  # type: ignore[arg-type] # what a caller might hand in


def test_the_first_round_is_the_upper_half_against_the_lower() -> None:
    assert next_round(Plan(hosts=("a", "b", "c", "d", "e")), ()) == (
        Run(("a", "c")),
        Run(("b", "d")),
    )


def test_verdicts_name_the_object_and_show_the_matrix() -> None:
    hosts = names(8)
    sim = Simulated(hosts, bad_hosts=frozenset({hosts[2]}))
    located, outcomes, _ = carry_out(Plan(hosts=hosts), sim.measure)
    (verdict,) = places.verdicts(hosts, located, outcomes, 340.0)
    assert verdict.status is Status.FAIL
    assert verdict.hosts == (hosts[2],)
    assert verdict.cause is not None
    assert verdict.cause.slug == "collective-bad-host"
    assert f"nodename={hosts[2]}" in verdict.remedies[-1].command
    assert "of 28 paths exercised" in verdict.reason
    (figure,) = verdict.figures
    assert (figure.form, figure.data["floor"]) == ("matrix", 340.0)


def cells(outcomes: Sequence[Outcome], hosts: Sequence[str]) -> int:
    data = matrix(hosts, outcomes, None).data
    rows, columns = data["rows"], data["columns"]
    assert isinstance(rows, list)
    assert isinstance(columns, list)
    return len(rows) * len(columns)


def test_a_large_matrix_is_thinned_to_what_failed() -> None:
    hosts = names(256)
    sim = Simulated(hosts, bad_hosts=frozenset({hosts[7]}))
    _, outcomes, _ = carry_out(Plan(hosts=hosts), sim.measure)
    assert 0 < cells(outcomes, hosts) <= 2000
    assert cells(outcomes[:20], hosts[:40]) == 1600
    everything = Simulated(hosts, all_bad=True)
    _, outcomes, _ = carry_out(Plan(hosts=hosts), everything.measure)
    assert 0 < cells(outcomes, hosts) <= 2000


def test_culprits_read_as_objects() -> None:
    assert str(Culprit("leaf", ("a", "b"), leaf="tor-3")) == "leaf tor-3"
    assert str(Culprit("rail", ("a",), 3)) == "host a rail 3"
