"""What a run keeps of its inventory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commcheck.errors import RunFolderError
from commcheck.inventory.load import load
from commcheck.inventory.snapshot import restore, take

TEXT = """
all:
  vars: {rack: r1, ansible_password: hush, vault_key: hush}
  children:
    gpu:
      hosts:
        gpu-[01:03]: {commcheck_mtu: 9000}
      vars:
        commcheck_platform: gpu-roce
        commcheck_thresholds: {pause_share: 0.2, list: [1, null, true]}
        commcheck_prometheus_url: http://me:hush@prom/
"""
OLD = """
all:
  vars:
    commcheck_job_env: {HF_TOKEN: hush}
    commcheck_mpijob: {worker: {spec: {containers: [{env: [{name: HF_TOKEN, value: hush}]}]}}}
    commcheck_train_command: python train.py --api-key hush
    rack_password: hush
  hosts: {a: {}}
"""


def test_what_verdicts_rest_on_comes_back_and_no_secret_was_kept(tmp_path: Path) -> None:
    (tmp_path / "inv.yaml").write_text(TEXT)
    inventory = load(("inv.yaml",), cwd=tmp_path)
    kept = json.loads(json.dumps(take(inventory, {"rack"})))
    assert "hush" not in json.dumps(kept)
    again = restore(kept)
    assert (again.groups, again.digest, again.sources) == (
        inventory.groups,
        inventory.digest,
        inventory.sources,
    )
    for then, now in zip(inventory.hosts, again.hosts, strict=True):
        assert (now.name, now.groups, now.origin) == (then.name, then.groups, then.origin)
        assert now.platform_group == then.platform_group == "gpu"  # else it has other peers
        assert set(now.variables) == {
            "rack",
            "commcheck_mtu",
            "commcheck_platform",
            "commcheck_thresholds",
            "commcheck_prometheus_url",
        }
        for name in ("rack", "commcheck_mtu", "commcheck_platform", "commcheck_thresholds"):
            assert now.variables[name] == then.variables[name]
            assert now.origin_of(name) == then.origin_of(name)
    assert json.loads(json.dumps(take(again, {"rack"}))) == kept


def test_nothing_that_looks_like_a_secret_is_kept_whoever_wrote_it(tmp_path: Path) -> None:
    """An inventory that holds one is refused, but by a check of a site that reads it, perhaps."""
    (tmp_path / "inv.yaml").write_text(OLD)
    kept = take(load(("inv.yaml",), cwd=tmp_path), {"rack_password"})
    assert "hush" not in json.dumps(kept)
    assert json.dumps(kept).count("***") == 4


@pytest.mark.parametrize("kept", [{}, {"hosts": [{}], "groups": {}, "sources": [], "digest": ""}])
def test_a_snapshot_that_is_none_is_refused(kept: dict[str, object]) -> None:
    with pytest.raises(RunFolderError, match="no whole inventory"):
        restore(kept)
