"""Megatron's DistributedDataParallelConfig in YAML, Python and Hydra's overrides."""

from __future__ import annotations

import pytest

from commcheck.errors import UsageError
from commcheck.frameworks import causes
from commcheck.model import Cause, Status
from tests.frameworks.test_config import found, wrong

OFF = [("OVERLAP-001", causes.OFF)]
WITHOUT = [("OVERLAP-004", causes.NO_EFFECT), *OFF]
RL = """policy:
  megatron_cfg:
    enabled: true
    optimizer:
      use_distributed_optimizer: true
    distributed_data_parallel_config:
      grad_reduce_in_fp32: false
      overlap_grad_reduce: {reduce}
      overlap_param_gather: {gather}
"""
BRIDGE = "model:\n  seq_length: 4096\nddp:\n  overlap_grad_reduce: true\n"
VERL = "python -m verl.trainer.main_ppo actor.strategy=megatron"
DDP = "+actor.megatron.override_ddp_config."
CALL = "from megatron.core.distributed import DistributedDataParallelConfig\n"


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("a.yaml", RL.format(reduce="true", gather="true"), []),
        ("a.yaml", RL.format(reduce="false", gather="false"), OFF),
        ("a.yaml", RL.format(reduce="false", gather="true"), WITHOUT),
        # What a section leaves open a recipe decides.
        ("a.yaml", BRIDGE + "  grad_reduce_in_fp32: true\n", []),
        ("a.yaml", BRIDGE + "  overlap_param_gather: true\n", []),
        ("a.yaml", BRIDGE + "  use_distributed_optimizer: true\n  overlap_param_gather: false\n",
         OFF),
        ("a.yaml", BRIDGE + "  bucket_size: 40\n", [("BUCKET-001", causes.UNIT)]),
        ("a.yaml", BRIDGE + "  bucket_size: 40000000\n", []),
        ("a.yaml", "jobs:\n- ddp: {overlap_grad_reduce: false, align_param_gather: false}\n", OFF),
        ("a.sh", f"{VERL} \\\n  {DDP}overlap_grad_reduce=True {DDP}bucket_size=40000000", []),
        ("a.sh", f"{VERL} {DDP}overlap_grad_reduce=False {DDP}grad_reduce_in_fp32=True", OFF),
        ("a.sh", f"{VERL} {DDP}overlap_grad_reduce=False", OFF),
        ("a.sh", f"{VERL} {DDP}overlap_grad_reduce=True {DDP}bucket_size=40",
         [("BUCKET-001", causes.UNIT)]),
        ("a.yaml", "actor:\n  megatron:\n    ddp:\n      overlap_grad_reduce: false\n", OFF),
        ("a.sh", f'A=(\n  "{DDP}overlap_grad_reduce=False"\n  "{DDP}overlap_param_gather=True"\n)',
         WITHOUT),
        ("m.py", "def recipe():\n  cfg = base()\n  cfg.ddp.overlap_grad_reduce = False\n"
         "  return cfg\ndef other():\n  cfg.ddp.overlap_grad_reduce = True\n", OFF),
        ("m.py", "recipe.trainer.strategy.ddp.overlap_grad_reduce = True\n"
         "recipe.trainer.strategy.ddp.bucket_size = 40\n", [("BUCKET-001", causes.UNIT)]),
        ("m.py", "if small:\n  cfg.ddp.overlap_grad_reduce = False\n"
         "cfg.ddp.overlap_grad_reduce = True\n", []),
        ("m.py", CALL + "core.DistributedDataParallelConfig(\n  overlap_grad_reduce=False,\n"
         "  bucket_size=None)", OFF),
        ("m.py", CALL + "DistributedDataParallelConfig(overlap_grad_reduce=True, bucket_size=1e6)",
         [("BUCKET-002", causes.TOO_SMALL)]),
    ],
)  # fmt: skip
def test_rules(file: str, text: str, expected: list[tuple[str, Cause | None]]) -> None:
    assert wrong(text, file) == expected


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.yaml", RL.replace("true", "false", 1).format(reduce="false", gather="false")),
        # Others have a setting of that name.
        ("a.yaml", "data_parallel:\n  mode: zero3\n  overlap_grad_reduce: false\n"),
        ("a.sh", f"{VERL} trainer.overlap_grad_reduce=False"),
        ("m.py", "DistributedDataParallelConfig(grad_reduce_in_fp32=True)"),
        ("m.py", "cfg.comm.overlap_grad_reduce = False\nself.overlap_grad_reduce = False"),
    ],
)  # fmt: skip
def test_what_is_none_of_megatrons_is_left_alone(file: str, text: str) -> None:
    with pytest.raises(UsageError, match="no setting"):
        found(text, file)


def test_a_field_is_named_as_it_stands_there_and_only_warned_of() -> None:
    told = found(RL.format(reduce="false", gather="true"), "a.yaml")
    both = [each for each in told if each.remedies]
    assert {each.status for each in both} == {Status.WARN}
    assert both[0].reason == "a.yaml:9: overlap_param_gather needs overlap_grad_reduce"
    assert both[1].reason.startswith("a.yaml:8: overlap_grad_reduce is false")
    (remedy,) = both[1].remedies
    assert remedy.command == "overlap_grad_reduce: true"
    assert "Every parameter that is trained gets a gradient" in remedy.precondition.en


def test_a_computed_field_is_not_known() -> None:
    text = CALL + "DistributedDataParallelConfig(overlap_grad_reduce=args.o, bucket_size=None)"
    assert any("overlap_grad_reduce is args.o" in each.reason for each in found(text, "m.py"))
    text = f"{VERL} {DDP}overlap_grad_reduce=$X {DDP}grad_reduce_in_fp32=True"
    assert any("overlap_grad_reduce is $X" in each.reason for each in found(text, "a.sh"))


def test_warnings_of_python_about_a_source_are_not_passed_on() -> None:
    assert wrong("x = '\\d'\nDDP(m)", "m.py") == []
