"""What Transformers, Accelerate and others set of DDP, FSDP and DeepSpeed by themselves."""

from __future__ import annotations

import pytest

from commcheck.frameworks import causes, causes_fsdp
from commcheck.model import Cause, Kind
from tests.frameworks.test_config import found, wrong

PREFETCH = [("OVERLAP-006", causes_fsdp.PREFETCH_OFF)]
ACCELERATE = "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n"
ONE_UNIT = [("OVERLAP-008", causes_fsdp.ONE_UNIT)]
LAUNCH = "accelerate launch --num_processes 8 "
OPENRLHF = "deepspeed --module openrlhf.cli.train_sft --micro_train_batch_size 2 "
COMPOSER = "max_duration: 1ep\nfsdp_config:\n  sharding_strategy: FULL_SHARD\n"
FULL_SHARD = "fsdp:\n  - full_shard\n  - auto_wrap\nfsdp_config:\n  fsdp_offload_params: true\n"


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        # accelerate commands/launch.py: --fsdp_backward_prefetch has no default, and none is off.
        ("a.yaml", ACCELERATE, PREFETCH),
        ("a.yaml", ACCELERATE + "  fsdp_backward_prefetch: BACKWARD_PRE\n", []),
        ("a.yaml", ACCELERATE + "  fsdp_version: 2\n", []),
        ("a.yaml", ACCELERATE + "  fsdp_backward_prefetch_policy: BACKWARD_PRE\n", PREFETCH),
        ("a.yaml", ACCELERATE + "  fsdp_backward_prefetch_policy: BACKWARD_PRE\n"
         "  fsdp_backward_prefetch: BACKWARD_PRE\n", []),
        ("a.yaml", FULL_SHARD + "  fsdp_backward_prefetch: NO_PREFETCH\n", PREFETCH),
        ("a.yaml", FULL_SHARD + "  fsdp_backward_prefetch: BACKWARD_PRE\n", []),
        # Axolotl has the version beside the section.
        ("a.yaml", "fsdp_version: 2\nfsdp_config:\n  backward_prefetch: NO_PREFETCH\n", []),
        ("a.yaml", "fsdp_version: 1\nfsdp_config:\n  backward_prefetch: NO_PREFETCH\n", PREFETCH),
        # Composer's default is BACKWARD_POST (composer/utils/parallelism.py).
        ("m.yaml", COMPOSER, []),
        ("m.yaml", COMPOSER + "  backward_prefetch: BACKWARD_PRE\n", []),
        ("m.yaml", COMPOSER + "  backward_prefetch: NONE\n", PREFETCH),
        # Parameters that are kept after the forward are not gathered in the backward.
        ("a.yaml", ACCELERATE.replace("FULL_SHARD", "SHARD_GRAD_OP"), []),
        ("a.yaml", ACCELERATE.replace("FULL_SHARD", "NO_SHARD"), []),
        ("a.yaml", ACCELERATE.replace("FULL_SHARD", "2"), []),
        ("a.yaml", ACCELERATE.replace("FULL_SHARD", "HYBRID_SHARD"), PREFETCH),
        ("a.yaml", ACCELERATE.replace("FULL_SHARD", "5"), []),
        ("a.yaml", FULL_SHARD.replace("full_shard", "shard_grad_op")
         + "  fsdp_backward_prefetch: no_prefetch\n", []),
        ("a.json", '{"fsdp": ["shard_grad_op"], '
         '"fsdp_config": {"backward_prefetch": "no_prefetch"}}', []),
        ("m.py", "FSDP(m, sharding_strategy=S.SHARD_GRAD_OP, backward_prefetch=None)", []),
        ("m.py", "FSDP(m, sharding_strategy=S.FULL_SHARD, backward_prefetch=None)",
         PREFETCH),
        # One unit is gathered before the forward and reduced after the backward.
        ("a.yaml", ACCELERATE + "  fsdp_auto_wrap_policy: NO_WRAP\n", ONE_UNIT),
        ("a.yaml", ACCELERATE + "  fsdp_version: 2\n  fsdp_auto_wrap_policy: NO_WRAP\n", ONE_UNIT),
        ("a.yaml", ACCELERATE + "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n", PREFETCH),
        ("a.sh", LAUNCH + "--use_fsdp --fsdp_auto_wrap_policy NO_WRAP t.py", ONE_UNIT),
        ("m.py", "FullyShardedDataParallelPlugin(auto_wrap_policy='no_wrap')", ONE_UNIT),
        # Accelerate's plugins.
        ("m.py", "FullyShardedDataParallelPlugin(backward_prefetch='NO_PREFETCH')", PREFETCH),
        ("m.py", "FullyShardedDataParallelPlugin(fsdp_version=2)", []),
        ("m.py", "DeepSpeedPlugin(zero_stage=2)", [("OVERLAP-001", causes.OFF)]),
        ("m.py", "DeepSpeedPlugin(zero_stage=3, offload_optimizer_device='cpu')",
         [("ZERO-005", causes.OFFLOAD_UNPINNED)]),
        # Flags of accelerate launch mean what its YAML means.
        ("a.sh", LAUNCH + "--use_fsdp --fsdp_version 2 t.py", []),
        ("a.sh", LAUNCH + "--use_fsdp --fsdp_backward_prefetch NO_PREFETCH t.py", PREFETCH),
        ("a.sh", LAUNCH + "--use_fsdp --fsdp_sharding_strategy 2 t.py", []),
        ("a.sh", LAUNCH + "--use_deepspeed --zero_stage 3 t.py --ddp_find_unused_parameters", []),
        ("a.sh", "python -m accelerate.commands.launch --use_deepspeed --zero_stage 2 t.py",
         [("OVERLAP-001", causes.OFF)]),
        # OpenRLHF sets overlap_comm only where it is told to; DeepSpeed has it at stage 3.
        ("a.sh", OPENRLHF + "--zero_stage 2 --adam_offload", [("OVERLAP-001", causes.OFF)]),
        ("a.sh", OPENRLHF + "--bf16", [("OVERLAP-001", causes.OFF)]),
        ("a.sh", OPENRLHF + "--ds.zero_stage 2", [("OVERLAP-001", causes.OFF)]),
        ("a.sh", OPENRLHF + "--zero_stage 2 --overlap_comm", []),
        ("a.sh", OPENRLHF + "--ds.zero_stage 2 --ds.overlap_comm --bf16", []),
        ("a.sh", OPENRLHF + "--zero_stage 3", []),
        ("a.yaml", "ddp_bucket_cap_mb: 0.2\nddp_find_unused_parameters: true\n",
         [("BUCKET-002", causes.TOO_SMALL), ("OVERLAP-007", causes.UNUSED)]),
        ("a.json", '{"fsdp": ["full_shard"], "fsdp_config": {"fsdp_backward_prefetch": "auto"}}',
         []),
        ("a.json", '{"fsdp": "full_shard", "fsdp_config": {"backward_prefetch": "no_prefetch"}}',
         PREFETCH),
        # transformers/trainer.py: ddp_static_graph, since version 5.
        ("a.sh", "x.py --ddp_find_unused_parameters True --ddp_static_graph True", []),
        ("m.py", "TrainingArguments(ddp_find_unused_parameters=True, ddp_static_graph=True)", []),
        ("t.yaml", "trainer:\n  devices: 8\n  strategy: ddp_find_unused_parameters_true\n",
         [("OVERLAP-007", causes.UNUSED)]),
        ("t.yaml", "strategy: ddp\n", []),
        # Under DeepSpeed or FSDP nothing is wrapped in DDP.
        ("a.yaml", "deepspeed: z3.json\nddp_find_unused_parameters: true\n", []),
        ("m.py", "a = TrainingArguments(fsdp='full_shard', ddp_find_unused_parameters=True)", []),
        ("a.sh", "x.py --deepspeed z3.json --ddp_find_unused_parameters True", []),
    ],
)  # fmt: skip
def test_rules(file: str, text: str, expected: list[tuple[str, Cause | None]]) -> None:
    assert wrong(text, file) == expected


def test_a_name_that_is_read_no_longer_is_told_with_its_line() -> None:
    told = found(ACCELERATE + "  fsdp_backward_prefetch_policy: BACKWARD_PRE\n", "a.yaml")
    (verdict,) = [each for each in told if each.remedies]
    assert verdict.reason.startswith("a.yaml:4: backward_prefetch stands under")
    assert "ignores since 1.0" in verdict.reason
    told = found(ACCELERATE, "a.yaml")
    assert any(each.reason.startswith("a.yaml:2: backward_prefetch is not set") for each in told)


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        # The trainer searches for unused parameters by itself unless activations are checkpointed.
        ("m.py", "a = TrainingArguments(ddp_bucket_cap_mb=25)", "on without gradient check"),
        ("a.sh", "x.py --ddp_bucket_cap_mb 25", "on without gradient checkpointing"),
        ("a.json", '{"output_dir": "o", "ddp_bucket_cap_mb": 25}', "left to Transformers (on"),
        ("a.yaml", FULL_SHARD, "left to Transformers (off"),
        ("f.json", '{"fsdp_backward_prefetch_policy": "BACKWARD_PRE", "fsdp_min_num_params": 0}',
         "left to Transformers (off"),
        ("a.yaml", "fsdp: [full_shard, auto_wrap]\n", "left to Transformers (off"),
        ("a.sh", LAUNCH + "--use_fsdp t.py", "left to Accelerate's own configuration (off"),
        ("m.py", "FullyShardedDataParallelPlugin()", "left to Accelerate's own configuration (off"),
        ("a.sh", "swift sft --deepspeed zero2_offload", "in swift/config/zero2_offload.json"),
        ("m.py", "DeepSpeedPlugin(hf_ds_config='z3.json')", "stand in z3.json"),
        ("a.sh", LAUNCH + "--use_fsdp --config_file c/f.yaml t.py", "stand in c/f.yaml"),
        ("a.sh", LAUNCH + "--use_deepspeed --deepspeed_config_file z2.json t.py", "in z2.json"),
        ("m.py", "FSDP(m, sharding_strategy=args.how, backward_prefetch=None)", "is args.how"),
        ("a.yaml", "stage: sft\ndeepspeed: conf/z3.json\n", "stand in conf/z3.json"),
        ("a.json", '{"output_dir": "o", "deepspeed": "conf/z3.json"}', "stand in conf/z3.json"),
    ],
)  # fmt: skip
def test_what_the_trainer_sets_is_not_taken_for_the_default(
    file: str, text: str, says: str
) -> None:
    assert wrong(text, file) == []
    told = [each for each in found(text, file) if each.kind is Kind.UNDECIDABLE]
    assert any(says in each.reason for each in told), told


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("m.py", "a = TrainingArguments(ddp_bucket_cap_mb=25, ddp_find_unused_parameters=False)"),
        ("m.py", "a = TrainingArguments(ddp_bucket_cap_mb=25, gradient_checkpointing=True)"),
        ("a.sh", "x.py --ddp_bucket_cap_mb 25 --gradient_checkpointing"),
        ("a.sh", "swift sft --fsdp fsdp2"),
        ("a.yaml", "ddp_bucket_cap_mb: 25\nddp_find_unused_parameters: false\n"),
        ("a.yaml", "ddp_bucket_cap_mb: 25\ngradient_checkpointing: true\nfsdp: []\n"
         "fsdp_config:\n  min_num_params: 0\n"),
    ],
)  # fmt: skip
def test_what_is_told_is_known(file: str, text: str) -> None:
    told = found(text, file)
    assert [each for each in told if each.kind is Kind.UNDECIDABLE] == []
    assert wrong(text, file) == []
