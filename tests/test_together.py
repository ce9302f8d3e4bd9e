"""What hosts hold parts of is judged as one: whose case changes, and what it follows from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pytest

from commcheck.check import Check, Explained, Nothing, Together, Whole, failed, passed
from commcheck.model import Cause, Finding, Kind, Machine, Remedy, Result, Status, Verdict, Words
from commcheck.together import judged

_WORDS = Words("x", "x")


def cause(slug: str) -> Cause:
    return Cause(slug, _WORDS, _WORDS, (Remedy("", _WORDS, _WORDS),))


ROOT, LOST, OTHER = cause("root"), cause("lost"), cause("other")


@dataclass(frozen=True, slots=True)
class Seen:
    """Nothing is read here."""


def whole(parts: Mapping[str, str]) -> Iterable[Whole]:
    """Every host says what the last letter of all parts is: f and o are fails."""
    word = "".join(parts.values())
    said = {"f": failed(LOST, "lost"), "o": failed(OTHER, "other")}.get(word[-1], passed(word))
    yield Whole(tuple(parts), dict.fromkeys(parts, (said,)))


CHECK: Check[Seen, Machine, Nothing, Nothing] = Check(
    id="library.log",
    title=_WORDS,
    subject=Machine,
    seen=Seen,
    judge=lambda *_: passed("x"),
    together=Together(lambda *_: None, whole),
    explained_by=(Explained("root", "any-in-job", of=frozenset({"lost"})),),
    causes=(LOST, OTHER),
)


def result(host: str, part: object, verdict: Verdict, check: str = CHECK.id) -> Result:
    found = Finding(check=check, host=host, subject="", verdict=verdict)
    return Result(check=check, host=host, findings=(found,), part=part)


def told(*results: Result) -> dict[str, Verdict]:
    return {each.host: each.worst.verdict for each in judged([CHECK], results, {})}


GATED = Verdict(status=Status.SKIP, kind=Kind.GATED, reason="gated")
FINE = passed("alone")


def test_the_whole_takes_the_place_of_the_parts() -> None:
    assert told(result("a", "1", FINE), result("b", "2", FINE)) == {
        "a": passed("12"),
        "b": passed("12"),
    }
    assert told(result("a", None, FINE)) == {}
    assert told(result("a", "1", passed("1"))) == {}  # nothing new


def test_a_cause_on_the_same_host_explains_only_that_host() -> None:
    near = replace(CHECK, explained_by=(Explained("root"),))
    below = result("b", None, failed(ROOT, "down"), "physical.nic-link-up")
    results = (result("a", "1", FINE), result("b", "f", FINE), below)
    found = {each.host: each.worst.verdict.follows for each in judged([near], results, {})}
    assert found == {"a": "", "b": "root"}


def test_a_host_that_is_shut_out_gives_its_part_and_keeps_its_case() -> None:
    assert told(result("a", "1", FINE), result("b", "2", GATED)) == {"a": passed("12")}


def test_the_later_of_two_results_counts() -> None:
    assert told(result("a", "1", FINE), result("a", "3", FINE)) == {"a": passed("3")}


@pytest.mark.parametrize(("letter", "follows"), [("f", "root"), ("o", "")])
def test_a_cause_on_any_host_of_the_job_explains_what_it_may(letter: str, follows: str) -> None:
    below = result("b", None, failed(ROOT, "down"), "physical.nic-link-up")
    found = told(result("a", "1", FINE), result("b", letter, GATED), below)
    assert found["a"].follows == follows
    assert found["a"].status is (Status.SKIP if follows else Status.FAIL)
    # A host that takes no part explains nothing.
    elsewhere = result("c", None, failed(ROOT, "down"), "physical.nic-link-up")
    assert told(result("a", letter, FINE), elsewhere)["a"].status is Status.FAIL
