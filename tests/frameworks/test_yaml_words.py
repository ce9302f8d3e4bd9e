"""YAML as PyYAML and OmegaConf take it, who read the frameworks' files."""

from __future__ import annotations

import pytest

from commcheck.frameworks import causes
from commcheck.model import Cause, Kind
from tests.frameworks.test_config import found, wrong

UNUSED = [("OVERLAP-007", causes.UNUSED)]
OFF = [("OVERLAP-001", causes.OFF)]
DDP = "ddp_bucket_cap_mb: 25\nddp_find_unused_parameters: {}\n"
ZERO = "deepspeed_config:\n  zero_stage: 3\n  {}\n"
MEGATRON = "ddp:\n  overlap_grad_reduce: {}\n  align_param_gather: true\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((DDP.format(word), UNUSED) for word in ("True", "TRUE", "yes", "On", "true")),
        *((DDP.format(word), []) for word in ("False", "no", "OFF", "false", "Null")),
        (ZERO.format("overlap_comm: False"), OFF),
        (ZERO.format("offload_optimizer_device: cpu\n  offload_optimizer_pin_memory: True"), []),
        (MEGATRON.format("False"), OFF),
        (MEGATRON.format("True"), []),
        (MEGATRON.format("true") + "  bucket_size: 40_000_000\n", []),
        (MEGATRON.format("true") + "  bucket_size: 40_000\n", [("BUCKET-002", causes.TOO_SMALL)]),
        (f"model:\n  enabled: False\n  d: {{x: 1}}\n{MEGATRON.format('True')}", []),
    ],
)
def test_words_are_what_their_reader_makes_of_them(
    text: str, expected: list[tuple[str, Cause | None]]
) -> None:
    assert wrong(text, "a.yaml") == expected


def test_what_omegaconf_fills_in_is_not_known() -> None:
    told = found(MEGATRON.format("${overlap}") + "  bucket_size: ${size}\n", "a.yaml")
    unknown = [each.reason for each in told if each.kind is Kind.UNDECIDABLE]
    assert [reason.partition(", ")[0] for reason in unknown] == [
        "a.yaml:4: ddp_bucket_size is ${size}",
        "a.yaml:2: overlap_grad_reduce is ${overlap}",
    ]
