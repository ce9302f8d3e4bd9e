"""What one cause on a host brings with it there: which findings are folded, and under what."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from commcheck.check import AnyCheck, Check, Explained, Nothing, failed, passed
from commcheck.consequences import folded
from commcheck.discover import discover
from commcheck.model import Cause, Finding, Kind, Machine, Remedy, Status, Verdict, Words

WORDS = Words("x", "x")


def cause(slug: str) -> Cause:
    return Cause(slug, WORDS, WORDS, (Remedy("true", WORDS, WORDS),))


def check(name: str, *edges: Explained) -> AnyCheck:
    return Check(
        id=f"physical.{name}",
        title=WORDS,
        subject=Machine,
        seen=Nothing,
        judge=lambda *_: passed("right"),
        explained_by=edges,
    )


def found(name: str, subject: str, verdict: Verdict | None = None) -> Finding:
    said = verdict or failed(cause(f"{name}-broken"), f"{name} is wrong")
    return Finding(check=f"physical.{name}", host="gpu-01", subject=subject, verdict=said)


CHECKS = (
    check("optic"),
    check("errors", Explained("optic-broken", "same-rail")),
    check(
        "loss",
        Explained("errors-broken", "same-rail"),
        Explained("slot-broken"),
        Explained("hot-broken", of=frozenset({"another-of-its-own"})),
    ),
)


def told(*findings: Finding) -> dict[str, list[tuple[str, str]]]:
    """By check: subject, and what its finding follows from."""
    by_check: dict[str, list[Finding]] = {}
    for each in findings:
        by_check.setdefault(each.check, []).append(each)
    return {
        name: [(each.subject, each.verdict.follows) for each in changed]
        for name, changed in folded(CHECKS, by_check).items()
    }


@pytest.mark.parametrize(
    ("findings", "follows"),
    [
        ((found("loss", "mlx5_1"),), {}),
        ((found("hot", ""), found("loss", "mlx5_1")), {}),
        (
            (found("errors", "mlx5_1"), found("loss", "mlx5_1"), found("loss", "mlx5_2")),
            {"physical.loss": [("mlx5_1", "errors-broken"), ("mlx5_2", "")]},
        ),
        # The root stands for the whole chain, not the link below.
        (
            (found("optic", "mlx5_1"), found("errors", "mlx5_1"), found("loss", "mlx5_1")),
            {
                "physical.errors": [("mlx5_1", "optic-broken")],
                "physical.loss": [("mlx5_1", "optic-broken")],
            },
        ),
        # A bond's rail suffers from what is wrong with one of its ports, another port does not.
        (
            (found("errors", "b0:p1"), found("loss", "b0"), found("loss", "b0:p2")),
            {"physical.loss": [("b0", "errors-broken"), ("b0:p2", "")]},
        ),
        # The same host is enough for an edge that says so.
        (
            (found("slot", ""), found("loss", "mlx5_2")),
            {"physical.loss": [("mlx5_2", "slot-broken")]},
        ),
    ],
)
def test_what_follows_from_what(
    findings: tuple[Finding, ...], follows: dict[str, list[tuple[str, str]]]
) -> None:
    assert told(*findings) == follows


def test_only_a_fail_is_a_cause_and_only_what_is_wrong_follows() -> None:
    bad = failed(cause("errors-broken"), "errors")
    for verdict in (
        replace(bad, status=Status.WARN),
        passed("right"),
    ):
        assert told(found("errors", "mlx5_1", verdict), found("loss", "mlx5_1")) == {}
    fine = found("loss", "mlx5_1", passed("nothing was lost"))
    assert told(found("errors", "mlx5_1"), fine) == {}


def test_the_reason_names_the_root_and_keeps_what_was_seen() -> None:
    findings = {each.check: [each] for each in (found("errors", "mlx5_1"), found("loss", "mlx5_1"))}
    (loss,) = folded(CHECKS, findings)["physical.loss"]
    assert (loss.verdict.status, loss.verdict.kind) == (Status.SKIP, Kind.BLOCKED)
    assert loss.verdict.reason == (
        "consequence of physical.errors (errors-broken) on gpu-01 mlx5_1: loss is wrong"
    )


@pytest.mark.parametrize(
    ("root", "brings"),
    [
        (
            ("optics-power", "module-rx-power-low", "mlx5_1"),
            (
                ("nic-ber", "ber-raw-high"),
                ("nic-symbol-errors", "nic-symbol-errors"),
                ("nic-link-flaps", "nic-link-flaps"),
                ("roce-retransmit", "roce-packets-lost"),
            ),
        ),
        (
            ("nic-fec", "fec-off", "mlx5_1"),
            (("nic-ber", "ber-uncorrected"), ("nic-symbol-errors", "nic-symbol-errors")),
        ),
        (
            ("nic-ber", "ber-uncorrected", "mlx5_1"),
            (
                ("nic-symbol-errors", "nic-symbol-errors"),
                ("nic-link-flaps", "nic-link-flaps"),
                ("ib-counters", "ib-link-errors"),
            ),
        ),
        (
            ("npu-optics", "npu-optic-power", "npu3"),
            (
                ("npu-bad-packets", "npu-bad-packets"),
                ("npu-link-flaps", "npu-link-flaps"),
                ("npu-retransmit", "npu-packet-loss"),
            ),
        ),
        (
            ("npu-fec", "npu-fec-off", "npu3"),
            (("npu-bad-packets", "npu-bad-packets"), ("npu-retransmit", "npu-packet-loss")),
        ),
        (
            ("npu-pfc", "npu-pfc-wrong-priority", "npu3"),
            (("npu-retransmit", "npu-packet-loss"),),
        ),
    ],
)
def test_one_bad_link_is_one_fault(
    root: tuple[str, str, str], brings: tuple[tuple[str, str], ...]
) -> None:
    """Light, errors and losses of one rail have one cause, by the bundled checks' own edges."""
    name, slug, subject = root
    checks = {one.id: one.check for one in discover(cwd=Path())}
    by_check = {
        f"physical.{each}": [found(each, subject, failed(cause(of), "wrong"))]
        for each, of in brings
    }
    by_check[f"physical.{name}"] = [found(name, subject, failed(cause(slug), "wrong"))]
    changed = folded([checks[each] for each in by_check], by_check)
    assert {each: changed[each][0].verdict.follows for each in changed} == {
        f"physical.{each}": slug for each, _ in brings
    }
    elsewhere = {**by_check, f"physical.{name}": [
        found(name, "other", failed(cause(slug), "wrong"))
    ]}  # fmt: skip
    alone = folded([checks[each] for each in elsewhere], elsewhere)
    assert slug not in {each.verdict.follows for of in alone.values() for each in of}
