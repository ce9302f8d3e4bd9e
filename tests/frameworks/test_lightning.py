"""Lightning's strategies: names, calls, and classes in the YAML of its command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from commcheck.errors import UsageError
from commcheck.frameworks import causes
from commcheck.frameworks.offline import analyse_config
from commcheck.model import Cause
from tests.frameworks.test_config import found, wrong

OFF = [("OVERLAP-001", causes.OFF)]
UNPINNED = [("ZERO-005", causes.OFFLOAD_UNPINNED)]
CLASS = "trainer:\n  strategy:\n    class_path: lightning.pytorch.strategies.{}\n    init_args:\n"


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        # lightning/pytorch/strategies/deepspeed.py: overlap_comm is on, pin_memory off.
        ("m.py", "L.Trainer(strategy='deepspeed_stage_2')", []),
        ("m.py", "L.Trainer(strategy='deepspeed_stage_2_offload')", UNPINNED),
        ("m.py", "L.Trainer(strategy='deepspeed_stage_3_offload_nvme')", UNPINNED),
        ("t.yaml", "trainer:\n  strategy: deepspeed_stage_1\n", []),
        ("m.py", "DeepSpeedStrategy(stage=2, overlap_comm=False)", OFF),
        ("m.py", "DeepSpeedStrategy(offload_optimizer=True, pin_memory=True)", []),
        ("m.py", "DeepSpeedStrategy(stage=3, offload_optimizer=True)", UNPINNED),
        ("m.py", "DeepSpeedStrategy(reduce_bucket_size=500)", [("BUCKET-001", causes.UNIT)]),
        ("m.py", "DeepSpeedStrategy(config={'zero_optimization': {'stage': 2}})", OFF),
        ("t.yaml", CLASS.format("DDPStrategy") + "      bucket_cap_mb: 0.1\n",
         [("BUCKET-002", causes.TOO_SMALL)]),
        ("t.yaml", CLASS.format("FSDPStrategy") + "      sharding_strategy: FULL_SHARD\n", []),
        ("t.yaml", CLASS.format("DeepSpeedStrategy") + "      overlap_comm: false\n", OFF),
        ("t.yaml", CLASS.format("DeepSpeedStrategy"), []),
    ],
)  # fmt: skip
def test_rules(file: str, text: str, expected: list[tuple[str, Cause | None]]) -> None:
    assert wrong(text, file) == expected


def test_what_another_file_or_nobody_tells() -> None:
    told = found("DeepSpeedStrategy(config='conf/ds.json')", "m.py")
    assert any("stand in conf/ds.json" in each.reason for each in told)
    told = found("DeepSpeedStrategy(stage=args.stage)", "m.py")
    assert any("stage is args.stage" in each.reason for each in told)
    for text in ("DeepSpeedStrategy(**options)", "L.Trainer(strategy='single_device')"):
        with pytest.raises(UsageError, match="no setting"):
            found(text, "m.py")


@pytest.mark.parametrize("strategy", ["[1]", "{class_path: [1]}", "{init_args: {}}", "auto"])
def test_other_strategies_are_none(strategy: str) -> None:
    with pytest.raises(UsageError, match="no setting"):
        found(f"trainer:\n  strategy: {strategy}\n", "t.yaml")


def test_any_key_of_deepspeed_may_stand_in_a_call(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(CLASS.format("DeepSpeedStrategy") + "      overlap_comm: false\n")
    assert not any("deepspeed_config_file" in note for note in analyse_config([path]).notes)
