"""Secrets that an operator wrote where everybody could read them are refused, and not repeated."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from commcheck.errors import InventoryError
from commcheck.inventory.load import load
from commcheck.prepare import Choice, prepare

POD = {"spec": {"containers": [{"name": "w", "env": [{"name": "HF_TOKEN", "value": "hush"}]}]}}


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("commcheck_job_env", {"NCCL_DEBUG": "INFO", "WANDB_API_KEY": "hush"}),
        ("commcheck_job_env", {"GIT": "https://me:hush@git.example.com"}),
        ("commcheck_train_command", "torchrun train.py --hf-token hush"),
        ("commcheck_train_environment", ["docker", "exec", "-e", "HF_TOKEN=hush", "trainer"]),
        ("commcheck_launch_args", "-x DB_PASSWORD=hush"),
        ("commcheck_mpijob", {"image": "site/bench:1", "worker": POD}),
    ],
)
def test_what_ps_would_show_is_refused(variable: str, value: object, tmp_path: Path) -> None:
    hosts = {"gpu-01": {variable: value}}
    (tmp_path / "inv.yaml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    with pytest.raises(InventoryError) as caught:
        prepare(Choice(inventory=("inv.yaml",)), cwd=tmp_path)
    (line,) = caught.value.problems
    assert line.startswith("inv.yaml:")
    assert variable in line
    assert "holds a secret" in line
    assert "hush" not in line


def test_an_inventory_s_command_is_not_told_a_secret(tmp_path: Path) -> None:
    with pytest.raises(InventoryError) as caught:
        load(["exec:./inv --token=hush"], cwd=tmp_path)
    assert "exec:./inv --token=***: error: holds a secret" in str(caught.value)
    assert "hush" not in str(caught.value)
