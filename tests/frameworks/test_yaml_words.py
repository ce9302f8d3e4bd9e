"""YAML as PyYAML and OmegaConf take it, who read the frameworks' files."""

from __future__ import annotations

import pytest

from commcheck.errors import UsageError
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
        ("fsdp: False\nfsdp_config:\n  backward_prefetch: NO_PREFETCH\n"
         "ddp_find_unused_parameters: True\n", UNUSED),
        (MEGATRON.format("False"), OFF),
        (MEGATRON.format("True"), []),
        (MEGATRON.format("true") + "  bucket_size: 40_000_000\n", []),
        (MEGATRON.format("true") + "  bucket_size: 40_000\n", [("BUCKET-002", causes.TOO_SMALL)]),
        (f"model:\n  enabled: False\n  d: {{x: 1}}\n{MEGATRON.format('True')}", []),
    ],
)  # fmt: skip
def test_words_are_what_their_reader_makes_of_them(
    text: str, expected: list[tuple[str, Cause | None]]
) -> None:
    assert wrong(text, "a.yaml") == expected


INLINE = "train:\n  deepspeed:\n    zero_optimization:\n      stage: {}\n      {}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (INLINE.format(2, "overlap_comm: False"), OFF),
        (INLINE.format(2, "overlap_comm: true"), []),
        (INLINE.format(3, "offload_optimizer: {device: cpu}"),
         [("ZERO-005", causes.OFFLOAD_UNPINNED)]),
        (INLINE.format(3, "stage.x: 1"), []),
        (INLINE.format(2, "overlap_comm: ${overlap}"), []),
        ("zero_optimization: {stage: 2, reduce_bucket_size: 5e2, overlap_comm: true}\n",
         [("BUCKET-001", causes.UNIT)]),
        ("d:\n  enabled: false\n  zero_optimization: {stage: 2}\nddp_bucket_cap_mb: 25\n"
         "ddp_find_unused_parameters: false\n", []),
    ],
)  # fmt: skip
def test_deepspeeds_configuration_in_another_file(
    text: str, expected: list[tuple[str, Cause | None]]
) -> None:
    assert wrong(text, "a.yaml") == expected


def test_it_is_named_by_its_line_and_refused_by_it() -> None:
    (verdict,) = [each for each in found(INLINE.format(2, "a: b"), "a.yaml") if each.remedies]
    assert verdict.reason.startswith("a.yaml:3: overlap_comm is not set, and off at stage 2")
    with pytest.raises(UsageError) as refused:
        found(INLINE.format("two", "a: b"), "a.yaml")
    assert refused.value.problems[0].startswith("a.yaml:4: error: stage: 'two'")
    text = '{"output_dir": "o", "deepspeed": {\n"zero_optimization": {"stage": 2}}}'
    assert wrong(text, "a.json") == OFF


def test_what_omegaconf_fills_in_is_not_known() -> None:
    told = found(MEGATRON.format("${overlap}") + "  bucket_size: ${size}\n", "a.yaml")
    unknown = [each.reason for each in told if each.kind is Kind.UNDECIDABLE]
    assert [reason.partition(", ")[0] for reason in unknown] == [
        "a.yaml:4: ddp_bucket_size is ${size}",
        "a.yaml:2: overlap_grad_reduce is ${overlap}",
    ]
