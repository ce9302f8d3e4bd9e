"""runtime.mfu: DeepSpeed's flops profiler, and what of the device's peak a step gets."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checks.runtime.mfu import CHECK
from commcheck.errors import ParseError
from commcheck.frameworks.flops_profiler import Profile, parse
from commcheck.frameworks.mfu import LOW, MfuLimits, judge, peak_of
from commcheck.frameworks.offline import analyse_config
from commcheck.model import Kind, Status
from tests.checks.conftest import Judge

FOLDER = Path(__file__).parents[2] / "recorded" / "deepspeed-flops"
FULL = (FOLDER / "zero2-wall-clock.txt").read_text()
OLD = (FOLDER / "old-forward-only.txt").read_text()
SXM = "NVIDIA H100 80GB HBM3"


@pytest.mark.parametrize(
    ("text", "profile"),
    [
        (FULL, Profile(10, 16, 4, 6.74e9, 225.21e12, 0.4125, 1.02, 1.53, 3)),
        (OLD, Profile(5, 8, 32, 334.09e6, 2.74e12, 0.0521403, None, None, 3)),
    ],
)
def test_recordings(text: str, profile: Profile) -> None:
    (found,) = parse(text)
    assert found.step == profile.step
    assert found.fwd_flops == pytest.approx(profile.fwd_flops)
    assert found.fwd_s == pytest.approx(profile.fwd_s)
    assert (found.world, found.batch, found.bwd_s, found.iter_s, found.factor) == (
        profile.world,
        profile.batch,
        profile.bwd_s,
        profile.iter_s,
        profile.factor,
    )
    assert found.params == pytest.approx(profile.params)


def test_recomputation_counts_four_times() -> None:
    (found,) = parse(FULL.replace("FLOPS per GPU = 3 * fwd", "FLOPS per GPU = 4 * fwd"))
    assert found.factor == 4


@pytest.mark.parametrize(
    ("device", "tflops"),
    [
        (SXM, 989.4),
        ("NVIDIA H100 PCIe", 756.0),
        ("NVIDIA H800 PCIe", 756.0),
        ("NVIDIA H100 NVL", 835.0),
        ("NVIDIA H200 NVL", 835.0),
        ("NVIDIA A100-SXM4-80GB", 312.0),
        ("NVIDIA H200", 989.4),
        ("NVIDIA B200", 2250.0),
        ("NVIDIA H20", 148.0),
        ("Tesla V100-SXM2-32GB", 125.0),
        ("Ascend910B3", 313.0),
        ("910B2", 376.0),
        ("Ascend910B2C", 376.0),
        ("Ascend910B4-1", 280.0),
        ("Ascend910A", 256.0),
        ("Ascend910_9392", None),
        ("Ascend910B1", None),
        ("GeForce", None),
    ],
)
def test_peaks(device: str, tflops: float | None) -> None:
    peak = peak_of(device)
    assert (peak.tflops if peak else None) == tflops


def test_verdicts() -> None:
    full, old = parse(FULL)[0], parse(OLD)[0]
    good = judge(full, peak_of(SXM), "log", MfuLimits())
    assert good.status is Status.PASS
    assert good.measured["mfu"] == pytest.approx(3 * 225.21 / 1.53 / 989.4, abs=1e-3)
    low = judge(full, peak_of("B200"), "log", MfuLimits())
    assert (low.status, low.cause) == (Status.WARN, LOW)
    assert judge(full, peak_of("A100"), "log", MfuLimits()).kind is Kind.UNDECIDABLE  # above 1
    assert judge(full, None, "log", MfuLimits()).kind is Kind.UNDECIDABLE
    partly = judge(old, peak_of(SXM), "log", MfuLimits())
    assert partly.kind is Kind.UNDECIDABLE
    assert "wall_clock_breakdown" in partly.reason


def test_files_and_hosts(judged: Judge) -> None:
    analysis = analyse_config([FOLDER / "zero2-wall-clock.txt"], device=SXM)
    (result,) = analysis.results
    assert (result.check, result.status) == ("runtime.mfu", Status.PASS)
    assert "MFU 45%" in analysis.screen[0]
    assert judged(CHECK, {}).verdict.kind is Kind.NOT_APPLICABLE


@given(st.integers(0, len(FULL)))
@settings(max_examples=60)
def test_any_beginning_is_read_or_refused(length: int) -> None:
    try:
        found = parse(FULL[:length])
    except ParseError:
        return
    assert len(found) == 1


def test_a_line_whose_number_is_none_is_left_out() -> None:
    """Found by a search: a date, a version or dots after a colon."""
    head, summary, rest = FULL.partition("Profile Summary at step")
    for odd in ("built on: 2023.6.18", "flops: ...", "x: 1.2.3 s"):
        assert parse(f"{head}{odd}\n{summary}{rest}") == parse(FULL)
