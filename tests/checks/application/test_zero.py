"""application.zero: which DeepSpeed settings a running job has; its file tells the rest."""

from __future__ import annotations

from checks.application.zero import CHECK
from commcheck.frameworks.causes import (
    GATHERS_SMALL,
    MISSPELT,
    OFFLOAD_UNPINNED,
    OTHER_STAGE,
    REGATHER,
    SCATTER_OFF,
)
from commcheck.model import Kind
from tests.checks.application.jobs import MEGATRON, answers
from tests.checks.conftest import Judge


def test_a_job_names_its_file(judged: Judge) -> None:
    verdict = judged(CHECK, answers("train.py --deepspeed ds_config.json")).verdict
    assert verdict.kind is Kind.UNDECIDABLE
    assert "commcheck analyze config ds_config.json" in verdict.reason


def test_none_of_its_business_or_unknown(judged: Judge) -> None:
    assert judged(CHECK, answers(MEGATRON)).verdict.kind is Kind.NOT_APPLICABLE
    assert judged(CHECK, answers()).verdict.kind is Kind.NOT_APPLICABLE
    assert judged(CHECK, {}).verdict.kind is Kind.UNDECIDABLE


def test_causes_of_files_are_declared_here() -> None:
    """They are found by ``analyze config``, tested with its files."""
    assert {GATHERS_SMALL, REGATHER, SCATTER_OFF} <= set(CHECK.causes)
    assert {OFFLOAD_UNPINNED, OTHER_STAGE, MISSPELT} <= set(CHECK.causes)
