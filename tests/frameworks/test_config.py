"""Settings in files: every rule with what it finds, what it leaves alone, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.errors import UsageError
from commcheck.frameworks import causes, causes_fsdp, documents
from commcheck.frameworks.judge import judge
from commcheck.frameworks.limits import Limits
from commcheck.frameworks.offline import analyse_config
from commcheck.frameworks.settings import Settings
from commcheck.model import Cause, Kind, Status, Verdict

BUCKETS = Path(__file__).parents[1] / "recorded" / "buckets"
GOOD_2 = {
    "stage": 2,
    "overlap_comm": True,
    "contiguous_gradients": True,
    "reduce_scatter": True,
    "reduce_bucket_size": 5e7,
    "allgather_bucket_size": 5e7,
}
GOOD_3 = {
    "stage": 3,
    "stage3_prefetch_bucket_size": 5e7,
    "stage3_param_persistence_threshold": 1e5,
    "offload_optimizer": {"device": "cpu", "pin_memory": True},
}


def zero(**section: Any) -> str:
    return json.dumps({"train_micro_batch_size_per_gpu": 1, "zero_optimization": section})


def found(text: str, file: str = "ds.json") -> list[Verdict]:
    jobs = documents.read(text, file)
    return [each for check in causes.TITLES for each in judge(check, jobs, Limits())]


def wrong(text: str, file: str = "ds.json") -> list[tuple[str, Cause | None]]:
    return [
        (each.rule, each.cause)
        for each in found(text, file)
        if each.status in (Status.WARN, Status.FAIL)
    ]


KNOWN_KEYS = {
    "cpu_offload_param": True,
    "use_all_reduce_for_fetch_params": True,
    "module_granularity_threshold": 0,
    "stage3_allgather_sequential": True,
    "leaf_module": {"classes": []},
    "mics_shard_size": -1,
}


@pytest.mark.parametrize(
    "section",
    [
        GOOD_2,
        GOOD_3,
        {"stage": 3},
        {"stage": 0},
        # By default both values of reduce_scatter end in an all-reduce.
        {**GOOD_2, "reduce_scatter": False},
        # After the step nothing computes: a large piece hides nothing less.
        {**GOOD_2, "allgather_bucket_size": 5e9},
        # Stages 1 and 2 alone gather in these pieces.
        {**GOOD_3, "allgather_bucket_size": 200},
        # An offloaded optimizer has contiguous gradients in any case.
        {**GOOD_2, "contiguous_gradients": False, "offload_optimizer": {
            "device": "cpu", "pin_memory": True}},
        {**GOOD_2, "offload_param": {"device": "none"}, "zero_hpz_partition_size": 1},
        {**GOOD_3, "zero_hpz_partition_size": 8, "zero_quantized_weights": True},
        {**GOOD_3, **KNOWN_KEYS},
    ],
)  # fmt: skip
def test_a_good_deepspeed_configuration_has_no_finding(section: dict[str, Any]) -> None:
    assert wrong(zero(**section)) == []


DEEPSPEED = [
    ({**GOOD_2, "reduce_bucket_size": 500}, "BUCKET-001", causes.UNIT),
    ({**GOOD_2, "allgather_bucket_size": 200}, "BUCKET-001", causes.UNIT),
    ({**GOOD_2, "reduce_bucket_size": 1e6}, "BUCKET-002", causes.TOO_SMALL),
    ({**GOOD_2, "reduce_bucket_size": 2e9}, "BUCKET-003", causes.TOO_LARGE),
    ({**GOOD_2, "overlap_comm": False}, "OVERLAP-001", causes.OFF),
    ({"stage": 2}, "OVERLAP-001", causes.OFF),
    ({"stage": 1}, "OVERLAP-001", causes.OFF),
    ({"stage": 3, "overlap_comm": False}, "OVERLAP-001", causes.OFF),
    ({**GOOD_2, "contiguous_gradients": False}, "OVERLAP-002", causes.NO_EFFECT),
    ({**GOOD_3, "stage3_prefetch_bucket_size": 0}, "ZERO-001", causes.GATHERS_SMALL),
    ({**GOOD_3, "prefetch_bucket_size": 100}, "ZERO-001", causes.GATHERS_SMALL),
    ({**GOOD_3, "stage3_param_persistence_threshold": 0}, "ZERO-002", causes.GATHERS_SMALL),
    ({**GOOD_3, "stage3_max_live_parameters": 1e6}, "ZERO-003", causes.REGATHER),
    ({**GOOD_2, "reduce_scatter": False, "use_multi_rank_bucket_allreduce": False}, "ZERO-004",
     causes.SCATTER_OFF),
    ({**GOOD_2, "offload_optimizer": {"device": "cpu"}}, "ZERO-005", causes.OFFLOAD_UNPINNED),
    ({**GOOD_2, "stage3_prefetch_bucket_size": 5e7}, "ZERO-006", causes.OTHER_STAGE),
    ({**GOOD_2, "offload_param": {"device": "cpu"}}, "ZERO-006", causes.OTHER_STAGE),
    ({**GOOD_2, "zero_hpz_partition_size": 8}, "ZERO-006", causes.OTHER_STAGE),
    ({**GOOD_2, "zero_quantized_gradients": True}, "ZERO-006", causes.OTHER_STAGE),
    ({**GOOD_2, "overlap_com": True}, "ZERO-007", causes.MISSPELT),
    ({**GOOD_2, "cpu_offload_params": True}, "ZERO-007", causes.MISSPELT),
]  # fmt: skip


@pytest.mark.parametrize(("section", "rule", "cause"), DEEPSPEED)
def test_deepspeed_rules(section: dict[str, Any], rule: str, cause: Cause) -> None:
    if "prefetch_bucket_size" in section:
        section = {k: v for k, v in section.items() if k != "stage3_prefetch_bucket_size"}
    assert wrong(zero(**section)) == [(rule, cause)]


def test_the_size_that_is_small_is_the_one_to_set() -> None:
    (verdict,) = [e for e in found(zero(**{**GOOD_2, "allgather_bucket_size": 1e6})) if e.remedies]
    assert verdict.remedies[0].command == '"allgather_bucket_size": 200000000'


def test_overlap_comes_with_what_it_may_cost() -> None:
    """NaN at stages 1 and 2: DeepSpeed issues 5242 and 7188, mended in 0.19 (pull 7965)."""
    (verdict,) = [each for each in found(zero(stage=2)) if each.remedies]
    assert "grad_norm" in verdict.remedies[0].precondition.en


def test_auto_is_not_judged_and_said_so(tmp_path: Path) -> None:
    section = {**GOOD_3, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto"}
    path = tmp_path / "ds.json"
    path.write_text(zero(**section))
    analysis = analyse_config([path])
    assert all(result.status is Status.PASS for result in analysis.results)
    assert any(note.startswith("auto ") for note in analysis.notes)


def test_what_accumulation_costs_is_told(tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    for stage, told in ((2, True), (1, False), (3, False)):
        section = {**GOOD_2, "stage": stage}
        path.write_text(
            json.dumps({"gradient_accumulation_steps": 8, "zero_optimization": section})
        )
        notes = analyse_config([path]).notes
        assert any("each of the 8 accumulated steps" in note for note in notes) is told


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("a.yaml", "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n", True),
        ("a.sh", "accelerate launch --use_deepspeed --zero_stage 2 t.py", True),
        ("a.sh", "python -m openrlhf.cli.train_dpo --zero_stage 2", False),
        ("a.json", zero(stage=2), False),
        ("t.py", "c = {'zero_optimization': {'stage': 2}}", False),
    ],
)
def test_where_accelerate_takes_other_keys(
    tmp_path: Path, file: str, text: str, told: bool
) -> None:
    path = tmp_path / file
    path.write_text(text)
    notes = analyse_config([path]).notes
    assert any("deepspeed_config_file" in note for note in notes) is told


def test_comms_logger() -> None:
    text = json.dumps({"zero_optimization": GOOD_2, "comms_logger": {"enabled": True}})
    assert wrong(text) == [("OVERLAP-003", causes.SYNCHRONOUS)]


def test_a_reason_names_file_and_line() -> None:
    text = json.dumps({"zero_optimization": {**GOOD_2, "overlap_comm": False}}, indent=1)
    line = text[: text.index("overlap_comm")].count("\n") + 1
    (verdict,) = [each for each in found(text) if each.status is Status.WARN]
    assert verdict.reason.startswith(f"ds.json:{line}: overlap_comm")
    assert '"overlap_comm": true' in verdict.remedies[0].command


def test_a_dict_in_python_is_a_configuration_too() -> None:
    """Computed values are set, and not known."""
    text = """import deepspeed
config = {
    "train_batch_size": 8,
    "zero_optimization": {
        "stage": 2,
        "overlap_comm": False,
        "reduce_bucket_size": args.bucket,
        "offload_optimizer": {"device": "cpu"} if args.offload else None,
    },
}
deepspeed.initialize(config=config)
"""
    assert wrong(text, "t.py") == [("OVERLAP-001", causes.OFF)]
    told = [each.reason for each in found(text, "t.py")]
    assert any(each.startswith("t.py:6: overlap_comm is false") for each in told)
    assert any("t.py:7: reduce_bucket_size is args.bucket, which is not known" in e for e in told)
    computed = text.replace("2,", "cfg.Stage,")
    assert wrong(computed, "t.py") == []
    assert any("stage is cfg.stage" in each.reason for each in found(computed, "t.py"))
    assert wrong('c = {"zero_optimization": cfg}\nDDP(m, bucket_cap_mb=25)', "t.py") == []


# --- Megatron -----------------------------------------------------------------------------------

LAUNCH = "torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py --micro-batch-size 1 "
GOOD = "--overlap-grad-reduce --overlap-param-gather --use-distributed-optimizer "


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (LAUNCH + GOOD, []),
        (LAUNCH, [("OVERLAP-001", causes.OFF)]),
        (LAUNCH + "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 2 "
         "--use-distributed-optimizer\nexport CUDA_DEVICE_MAX_CONNECTIONS=1", []),
        (LAUNCH + "--overlap-param-gather --overlap-grad-reduce",
         [("OVERLAP-004", causes.NO_EFFECT)]),
        (LAUNCH + "--use-distributed-optimizer --overlap-grad-reduce",
         [("OVERLAP-001", causes.OFF)]),
        (LAUNCH + GOOD + "--ddp-bucket-size 40", [("BUCKET-001", causes.UNIT)]),
        (LAUNCH + GOOD + "--ddp-bucket-size=500000", [("BUCKET-002", causes.TOO_SMALL)]),
        (LAUNCH + GOOD + "--ddp-bucket-size 40000000", []),
        (LAUNCH + GOOD + "--tensor-model-parallel-size 2", [("OVERLAP-005", causes.CONNECTIONS)]),
        ("TP=2\nexport CUDA_DEVICE_MAX_CONNECTIONS=1\n" + LAUNCH + GOOD
         + "--tensor-model-parallel-size $TP", []),
        ("TP=2\nCUDA_DEVICE_MAX_CONNECTIONS=8\n" + LAUNCH + GOOD
         + "--tensor-model-parallel-size ${TP}", [("OVERLAP-005", causes.CONNECTIONS)]),
        ("export CUDA_DEVICE_MAX_CONNECTIONS=1\n" + LAUNCH + "--use-torch-fsdp2",
         [("OVERLAP-005", causes.CONNECTIONS)]),
        ("export CUDA_LAUNCH_BLOCKING=1\n" + LAUNCH + GOOD,
         [("OVERLAP-003", causes.SYNCHRONOUS)]),
        ("export CUDA_LAUNCH_BLOCKING=0\n" + LAUNCH + GOOD, []),
        # Ranks of context parallelism reduce gradients with the others.
        ("export CUDA_DEVICE_MAX_CONNECTIONS=1\n" + LAUNCH + "--tensor-model-parallel-size 8 "
         "--context-parallel-size 2", [("OVERLAP-001", causes.OFF)]),
        # For the all-to-all of experts Megatron takes 1 and 32 alike.
        ("export CUDA_DEVICE_MAX_CONNECTIONS=32\n" + LAUNCH + GOOD
         + "--tensor-model-parallel-size 2 --overlap-moe-expert-parallel-comm", []),
        # Under DeepSpeed Megatron reduces nothing, and knows no flag for it.
        ("deepspeed --num_nodes 2 --num_gpus 8 pretrain_gpt.py --micro-batch-size 4 --deepspeed "
         "--deepspeed_config ds.json --tensor-model-parallel-size 2", []),
        ("NPROC_PER_NODE=8 megatron sft --tensor_model_parallel_size 4 --micro_batch_size 1", []),
        (LAUNCH + GOOD + "--tp-comm-overlap", [("OVERLAP-004", causes.NO_EFFECT)]),
        (LAUNCH + GOOD + "--tp-comm-overlap --sequence-parallel", []),
        (LAUNCH + GOOD + "--ddp-num-buckets 8 --ddp-bucket-size 40000000",
         [("OVERLAP-004", causes.NO_EFFECT)]),
        (LAUNCH + '\nARGS="\n  ' + GOOD.replace(" ", " \\\n  ") + '"', []),
        ("# --ddp-bucket-size 4\n" + LAUNCH + GOOD, []),
        (LAUNCH + GOOD + "# --ddp-bucket-size 4\nN=8 # TP=2 --overlap-param-gather", []),
        (LAUNCH + "--num-layers 2 # --overlap-grad-reduce", [("OVERLAP-001", causes.OFF)]),
    ],
)  # fmt: skip
def test_megatron_rules(command: str, expected: list[tuple[str, Cause]]) -> None:
    assert wrong(command, "train.sh") == expected


def test_settings_that_cannot_start_fail() -> None:
    verdicts = found(LAUNCH + "--overlap-param-gather --overlap-grad-reduce", "train.sh")
    assert Status.FAIL in [each.status for each in verdicts]


BRANCH = "if [ $OVERLAP -eq 1 ]; then\n  ARGS='--tp-comm-overlap'\nfi\n"


def test_what_stands_in_a_branch_may_not_be_given() -> None:
    for script, status in ((BRANCH, Status.WARN), ("ARGS=--tp-comm-overlap\n", Status.FAIL)):
        worst = [each.status for each in found(script + LAUNCH + GOOD, "t.sh") if each.remedies]
        assert worst == [status]
    profiled = "if [ $PROFILE = 1 ]; then\nexport CUDA_LAUNCH_BLOCKING=1\nfi\n"
    assert wrong(profiled + LAUNCH + GOOD, "t.sh") == []


def test_ranks_that_a_script_counts() -> None:
    script = "A=8\nB=2\nWORLD_SIZE=$(($A*$B))\nmsrun --worker_num $WORLD_SIZE pretrain_gpt.py "
    assert wrong(ONE + script + TP_8 + "8 --pipeline-model-parallel-size 2", "t.sh") == []
    assert wrong(ONE + script + TP_8 + "8", "t.sh") == [("OVERLAP-001", causes.OFF)]


def test_only_what_changes_the_checkpoint_says_so() -> None:
    (verdict,) = [each for each in found(LAUNCH, "train.sh") if each.remedies]
    assert [each.command for each in verdict.remedies] == ["--overlap-grad-reduce"]
    shards = LAUNCH + "--use-distributed-optimizer"
    (verdict,) = [each for each in found(shards, "train.sh") if each.remedies]
    assert "may not load" in verdict.remedies[0].precondition.en


def test_megatron_of_unknown_size_is_not_called_broken() -> None:
    assert wrong("pretrain_gpt.py --micro-batch-size 1", "train.sh") == []
    assert any("WORLD_SIZE" in each.reason for each in found("pretrain_gpt.py", "train.sh"))


TP_8 = "--tensor-model-parallel-size "
ONE = "export CUDA_DEVICE_MAX_CONNECTIONS=1\n"
ONE_HOST = "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --micro-batch-size 1 "


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('TP="${TP:-8}"\n' + ONE + ONE_HOST + TP_8 + "${TP}", []),
        ('TP="${TP:-8}"\n' + ONE_HOST + TP_8 + "${TP}", [("OVERLAP-005", causes.CONNECTIONS)]),
        (ONE + ONE_HOST + TP_8 + "${TP:-8}", []),
        (ONE + ONE_HOST + TP_8 + "${TP:-2}", [("OVERLAP-001", causes.OFF)]),
        ("TP=2\nTP=${TP:-8}\n" + ONE + ONE_HOST + TP_8 + "$TP", [("OVERLAP-001", causes.OFF)]),
        ("tp_size=8\n" + ONE + ONE_HOST + TP_8 + "$tp_size", []),
        ("tp_size=${1:-8}\n" + ONE + ONE_HOST + "--tensor-model-parallel-size=$tp_size", []),
        ("N=${NNODES:-2}\n" + ONE + 'torchrun --nnodes="$N" --nproc_per_node=8 pretrain_gpt.py '
         + TP_8 + "8", [("OVERLAP-001", causes.OFF)]),
        ("export CUDA_DEVICE_MAX_CONNECTIONS=${CUDA_DEVICE_MAX_CONNECTIONS:-1}\n" + ONE_HOST
         + TP_8 + "8", []),
        ('ARGS="' + GOOD.strip() + '"\nDEBUG=0\n' + LAUNCH + "$ARGS", []),
        ("CUDA_DEVICE_MAX_CONNECTIONS=${OTHER-'8'}\n" + ONE_HOST + TP_8 + "8",
         [("OVERLAP-005", causes.CONNECTIONS)]),
    ],
)  # fmt: skip
def test_variables_of_a_script_are_filled_in(
    script: str, expected: list[tuple[str, Cause]]
) -> None:
    assert wrong(script, "train.sh") == expected


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("t.sh", ONE + ONE_HOST + TP_8 + "$TP", "t.sh:2: tensor_model_parallel_size is $TP"),
        ("t.sh", "TP=\n" + ONE_HOST + GOOD + TP_8 + "${TP:-}", "size is ${TP:-}"),
        ("t.sh", ONE_HOST + GOOD + TP_8 + "${TP}", "tensor_model_parallel_size is ${TP}"),
        ("t.sh", ONE_HOST + GOOD + TP_8 + "$((N / 2))", "tensor_model_parallel_size is $((N"),
        ("t.sh", ONE + 'torchrun --nnodes="$N" --nproc_per_node 8 pretrain_gpt.py', "WORLD_SIZE"),
        ("t.sh", "CUDA_DEVICE_MAX_CONNECTIONS=$N\n" + ONE_HOST + GOOD + TP_8 + "8",
         "t.sh:1: CUDA_DEVICE_MAX_CONNECTIONS is $N"),
        ("t.sh", "x.py --ddp_bucket_cap_mb $CAP", "bucket_cap_mb is $CAP"),
        ("t.sh", "x.py --ddp_find_unused_parameters $UNUSED", "find_unused_parameters is $UNUSED"),
        ("m.py", "m = DDP(m, bucket_cap_mb=args.cap)", "m.py:1: bucket_cap_mb is args.cap"),
        ("m.py", "m = DDP(m, find_unused_parameters=args.unused)", "parameters is args.unused"),
        ("m.py", "m = DDP(m, device_ids=[0], **kwargs)", "find_unused_parameters is kwargs"),
        ("m.py", "m = FSDP(m, **policy)", "m.py:1: backward_prefetch is policy"),
        ("f.json", '{"transformer_layer_cls_to_wrap": ["Layer"]}', "left to Transformers"),
        ("t.sh", "x.py --fsdp 'full_shard auto_wrap'", "left to Transformers"),
        ("m.py", "a = TrainingArguments(fsdp='full_shard')", "left to Transformers"),
    ],
)  # fmt: skip
def test_what_is_set_elsewhere_is_not_taken_for_the_default(
    file: str, text: str, says: str
) -> None:
    assert wrong(text, file) == []
    told = [each for each in found(text, file) if each.kind is Kind.UNDECIDABLE]
    assert any(says in each.reason for each in told), told


def test_arguments_after_a_flag_are_not_its_value() -> None:
    script = LAUNCH + GOOD.replace(" ", " $MORE ", 1)
    assert wrong(script, "train.sh") == []
    assert all(each.kind is not Kind.UNDECIDABLE for each in found(script, "train.sh"))


# --- DDP and FSDP -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("a.sh", "torchrun run.py --ddp_bucket_cap_mb 25", []),
        ("a.sh", "torchrun run.py --ddp_bucket_cap_mb 0.1", [("BUCKET-002", causes.TOO_SMALL)]),
        ("a.sh", "x.py --ddp_bucket_cap_mb 26214400", [("BUCKET-001", causes.UNIT)]),
        ("a.sh", "x.py --ddp_bucket_cap_mb 4000", [("BUCKET-003", causes.TOO_LARGE)]),
        ("a.sh", "x.py --ddp_find_unused_parameters True", [("OVERLAP-007", causes.UNUSED)]),
        ("a.sh", "x.py --ddp_find_unused_parameters False", []),
        ("a.sh", "x.py --fsdp 'full_shard auto_wrap'", []),
        ("a.json", '{"bucket_cap_mb": 0.2}', [("BUCKET-002", causes.TOO_SMALL)]),
        ("f.json", '{"fsdp_backward_prefetch": "NO_PREFETCH"}',
         [("OVERLAP-006", causes_fsdp.PREFETCH_OFF)]),
        ("f.json", '{"backward_prefetch": "backward_pre"}', []),
        ("a.yaml", "distributed_type: FSDP\nfsdp_config:\n  fsdp_backward_prefetch: NO_PREFETCH\n",
         [("OVERLAP-006", causes_fsdp.PREFETCH_OFF)]),
        ("a.yaml", "deepspeed_config:\n  zero_stage: 2\n  offload_optimizer_device: none\n",
         [("OVERLAP-001", causes.OFF)]),
        ("m.py", "from torch.nn.parallel import DistributedDataParallel as DDP\n"
         "m = DDP(m, bucket_cap_mb=0.1,\n  find_unused_parameters=True)\n",
         [("BUCKET-002", causes.TOO_SMALL), ("OVERLAP-007", causes.UNUSED)]),
        ("m.py", "m = FSDP(m, backward_prefetch=None)\n",
         [("OVERLAP-006", causes_fsdp.PREFETCH_OFF)]),
        ("m.py", "m = FSDP(m, backward_prefetch=BackwardPrefetch.BACKWARD_PRE)\n", []),
        ("a.yaml", "fsdp_config:\n  fsdp_version: 2\n  fsdp_backward_prefetch: NO_PREFETCH\n", []),
        ("a.yaml", "distributed_type: MULTI_GPU\nnum_processes: 16\n", []),
        ("f.json", '{"version": 2, "backward_prefetch": "no_prefetch"}', []),
        ("f.json", '{"version": 1, "min_num_params": 0}',
         [("OVERLAP-006", causes_fsdp.PREFETCH_OFF)]),
        ("a.json", '{"output_dir": "o", "ddp_bucket_cap_mb": 0.2}',
         [("BUCKET-002", causes.TOO_SMALL)]),
        ("m.py", "fully_shard(layer, reshard_after_forward=True)\nfully_shard(model)\n", []),
        ("m.py", "a = TrainingArguments(output_dir='o', ddp_find_unused_parameters=True,\n"
         "  ddp_bucket_cap_mb=2048)\n",
         [("BUCKET-003", causes.TOO_LARGE), ("OVERLAP-007", causes.UNUSED)]),
        ("m.py", "a = SFTConfig(fsdp='full_shard',\n"
         "  fsdp_config={'backward_prefetch': 'no_prefetch'})",
         [("OVERLAP-006", causes_fsdp.PREFETCH_OFF)]),
        ("m.py", "a = SFTConfig(fsdp='full_shard', fsdp_config={'fsdp_version': 2})", []),
        ("m.py", "t = L.Trainer(devices=8, strategy='ddp_find_unused_parameters_true')",
         [("OVERLAP-007", causes.UNUSED)]),
        ("m.py", "t = L.Trainer(devices=8, strategy='ddp_find_unused_parameters_false')", []),
        ("m.py", "t = L.Trainer(devices=8, strategy='fsdp')", []),
        ("m.py", "m = torch.nn.parallel.DistributedDataParallel(m, bucket_cap_mb=size)\n", []),
    ],
)  # fmt: skip
def test_ddp_and_fsdp_rules(file: str, text: str, expected: list[tuple[str, Cause]]) -> None:
    assert wrong(text, file) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DDP(m, bucket_cap_mb=25 * 1024 * 1024)", [("BUCKET-001", causes.UNIT)]),
        ("DDP(m, bucket_cap_mb=25 << 20)", [("BUCKET-001", causes.UNIT)]),
        ("DDP(m, bucket_cap_mb=2**10)", [("BUCKET-003", causes.TOO_LARGE)]),
        ("DDP(m, bucket_cap_mb=int(0.5e2) / 2)", []),
        ("DDP(m, bucket_cap_mb=2**2**99)", []),
        ("DDP(m, bucket_cap_mb=9**99999999)", []),
        ("DDP(m, bucket_cap_mb=25 << 0.5)", []),
        ("DDP(m, bucket_cap_mb=25 / 0)", []),
        ("DDP(m, bucket_cap_mb=int(1e999))", []),
        ("c = {'zero_optimization': {'stage': 3, 'reduce_bucket_size': 5 * 10**2}}",
         [("BUCKET-001", causes.UNIT)]),
    ],
)  # fmt: skip
def test_what_is_computed_from_constants_is_known(
    text: str, expected: list[tuple[str, Cause]]
) -> None:
    assert wrong(text, "m.py") == expected


def test_what_a_program_sets_in_its_own_environment() -> None:
    """In a branch it may be for profiling."""
    said = [("OVERLAP-003", causes.SYNCHRONOUS)]
    line = "os.environ['CUDA_LAUNCH_BLOCKING'] = '1'"
    for text, expected in (
        (f"{line}\nDDP(m)", said),
        ("os.environ.setdefault('CUDA_LAUNCH_BLOCKING', '1')\nDDP(m)", said),
        (f"if __name__ == '__main__':\n    {line}\n    DDP(m)", said),
        (f"if args.debug:\n    {line}\nDDP(m)", []),
        (f"{line.replace('1', '0')}\nDDP(m)", []),
        ("os.environ['CUDA_DEVICE_MAX_CONNECTIONS'] = '1'\nfully_shard(m)",
         [("OVERLAP-005", causes.CONNECTIONS)]),
        ("os.environ['CUDA_DEVICE_MAX_CONNECTIONS'] = str(n)\nfully_shard(m)", []),
    ):  # fmt: skip
        assert wrong(text, "m.py") == expected
    (verdict,) = [each for each in found(f"{line}\nDDP(m)", "m.py") if each.remedies]
    assert verdict.reason.startswith("m.py:1: CUDA_LAUNCH_BLOCKING=1")


def test_no_static_graph_against_the_search_for_unused_parameters() -> None:
    """With gradient accumulation it crashes, or reduces nothing: PyTorch issue 143580."""
    told = found("m = DDP(m, find_unused_parameters=True)", "m.py")
    (verdict,) = [each for each in told if each.remedies]
    (remedy,) = verdict.remedies
    assert "static_graph" not in remedy.command
    assert "static_graph=True is no way round" in remedy.precondition.en


def test_what_was_set_is_not_called_default() -> None:
    """Each check tells its own settings: the bucket of this call is none of the overlap's."""
    told = found("model = DistributedDataParallel(model, bucket_cap_mb=0.5)", "train.py")
    (right,) = [each.reason for each in told if each.status is Status.PASS]
    assert right == "train.py:1: DDP: overlap as by default"


def test_deepspeeds_json_may_hold_comments() -> None:
    text = """{
  // by hand: "stage": 3
  "train_micro_batch_size_per_gpu": 4, # "http://x" is none
  "zero_optimization": { /* both
    lines */ "stage": 2, "note": "a // b, }",
    "overlap_comm": false,
  },
}"""
    (verdict,) = [each for each in found(text) if each.status is Status.WARN]
    assert verdict.reason.startswith("ds.json:6: overlap_comm is false")


def test_ddps_own_log() -> None:
    text = (BUCKETS / "ddp-log-cap-25.json").read_text()
    assert wrong(text) == [("BUCKET-004", causes.TOO_LARGE), ("BUCKET-005", causes.COPIES)]
    assert any("19% of communication" in each.reason for each in found(text))
    text = (BUCKETS / "ddp-log-cap-1.json").read_text()
    assert wrong(text) == [("BUCKET-005", causes.COPIES)]  # 65 % overlaps


def test_many_small_buckets_in_ddps_log() -> None:
    log = {
        "rebuilt_bucket_sizes": ", ".join(["200000"] * 40),
        "avg_backward_comm_time": 100,
        "avg_backward_compute_comm_overlap_time": 20,
    }
    assert wrong(json.dumps(log)) == [("BUCKET-004", causes.TOO_SMALL)]


# --- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "text", "place"),
    [
        ("ds.json", '{"zero_optimization": {\n"stage": 2\n"x": 1}}', "ds.json:3:1: error: no JSON"),
        ("ds.json", '{"zero_optimization": {\n"stage": "two"}}', "ds.json:2: error: stage: 'two'"),
        ("ds.json", '{"zero_optimization": {"stage": 2,\n"stage": 3}}', "ds.json:2: error: "),
        ("ds.json", '{"zero_optimization": {\n"overlap_comm": "yes"}}', "ds.json:2: error: o"),
        ("ds.json", '{"zero_optimization": 3}', "ds.json:1: error: zero_optimization"),
        ("ds.json", '{"zero_optimization":\n{"reduce_bucket_size": -1}}', "ds.json:2: error: r"),
        ("ds.json", '{ // a\n"zero_optimization": {"stage" 2}}', "ds.json:2:31: error: no JSON"),
        ("ds.json", '{"zero_optimization": {}} /* cut', "ds.json:1:27: error: no JSON"),
        ("ds.json", "[]", "ds.json:1: error: no JSON object"),
        ("ds.json", "", "ds.json:1:1: error: no JSON"),
        ("ds.json", '{"lr": 1}', "ds.json:1: error: neither DeepSpeed"),
        ("a.sh", "python train.py --lr 1", "a.sh: error: no setting"),
        ("a.sh", "torchrun --nproc_per_node 8 lora.py --micro_batch_size 8", "a.sh: error: no s"),
        ("m.py", "from megatron.core.distributed import DistributedDataParallel as DDP\nDDP(c, d)",
         "m.py: error: no setting"),
        ("a.sh", "accelerate launch \\\n --num_processes 8 \\\n --config_file conf/a.yaml t.py",
         "a.sh: error: no setting of DeepSpeed, DDP, FSDP or Megatron in it: they stand in conf/a"),
        ("a.yaml", "fsdp_config:\n  a: b\n  a: c\n", "a.yaml"),
        ("a.yaml", "x: [", "a.yaml:"),
        ("m.py", "def f(:\n", "m.py:1: error: no Python"),
        ("m.py", "x = 1\n", "m.py: error: no setting"),
        ("m.py", "x" + ".ddp" * 400 + ".bucket_size = 1", "m.py: error: no setting"),
        ("m.py", "x = " + "1+" * 9999 + "1", "m.py:1: error: no Python: "),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_clear_line(tmp_path: Path, file: str, text: str, place: str) -> None:
    path = tmp_path / file
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        analyse_config([path])
    assert len(refused.value.problems) == 1
    assert refused.value.problems[0].startswith(f"{tmp_path}/{place}")


def test_several_files_are_one_job(tmp_path: Path) -> None:
    script, config = tmp_path / "run.sh", tmp_path / "ds.json"
    script.write_text("deepspeed train.py --deepspeed_config conf/ds.json\n")
    config.write_text(zero(**{**GOOD_2, "overlap_comm": False}))
    alone = analyse_config([script])
    assert any("ds.json" in result.worst.verdict.reason for result in alone.results)
    both = analyse_config([script, config])
    assert {result.host for result in both.results} == {str(config)}
    (warned,) = [each for each in both.results if each.status is Status.WARN]
    assert warned.worst.verdict.remedies
    json.dumps(both.facts)


def test_stage_0_is_not_applicable(tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    path.write_text(zero(stage=0))
    (result,) = analyse_config([path]).results
    assert result.status is Status.SKIP


TEXT = st.text(alphabet=st.sampled_from(list('{}[]",:0159.eE-+truefalsn \n\\_=$')), max_size=60)


@given(TEXT, st.sampled_from(["a.json", "a.sh", "a.py", "a.yaml"]))
@settings(max_examples=60)
def test_any_text_is_read_or_refused(text: str, file: str) -> None:
    try:
        jobs = documents.read(text, file)
    except UsageError:
        return
    assert all(isinstance(job, Settings) for job in jobs)
    for check in causes.TITLES:
        judge(check, jobs, Limits())


@given(
    st.dictionaries(
        st.sampled_from(["stage", "overlap_comm", "reduce_bucket_size", "zz"]),
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.floats(),
            st.text(),
            st.just("auto"),
            st.lists(st.integers(), max_size=1),
        ),
    )
)
@settings(max_examples=60)  # fmt: skip
def test_any_zero_section_is_judged_or_refused(section: dict[str, Any]) -> None:
    try:
        found(zero(**section))
    except UsageError as error:
        assert all(problem.startswith("ds.json:") for problem in error.problems)
