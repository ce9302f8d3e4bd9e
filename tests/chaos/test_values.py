"""Shell words in every value of an inventory: none of them is ever run, here or on a host."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from commcheck.errors import UsageError
from commcheck.inventory.endpoint import endpoint
from commcheck.prepare import Choice, prepare
from tests.chaos.climbs import assert_nothing_runs, begin, climb
from tests.e2e.conftest import fleet_of
from tests.sshd import SshdFleet

__all__ = ["fleet_of"]

PAGE = (Path(__file__).parents[2] / "docs" / "variables.md").read_text()
VARIABLES = sorted(set(re.findall(r"^\| `(commcheck_\w+)`", PAGE, re.MULTILINE)))
ELSEWHERE = re.compile("kubectl|mpijob|password_env|host_key|peers|platform|prometheus_url")
"""What sends a host elsewhere, or would keep it from being asked at all."""

CONNECTION = (
    *("ansible_host", "ansible_user", "ansible_become_user", "ansible_ssh_private_key_file"),
    *("ansible_ssh_common_args", "ansible_ssh_extra_args"),
)
MADE = "commcheck-was-here"
KINDS = (
    "$(touch {0}/{1})",
    "`touch {0}/{1}`; touch {0}/{1} #",
    "'; touch {0}/{1}; '",
    "x\ntouch {0}/{1}\n",
    "-oProxyCommand=touch {0}/{1}",
    "x\0; touch {0}/{1}",
    "../../../../../..{0}/{1}\u202e",  # where it names a file to write, and reads backwards
)
NAME = re.compile(r"\b(?:commcheck|ansible)_\w+")


def shapes(value: str) -> list[Any]:
    """The forms that variables have; the first that is taken is tried."""
    return [value, [value], {"NCCL_DEBUG": value}, {value: value}, {"node": value}]


def accepted(
    file: Path, host: str, wanted: Mapping[str, str], own: Mapping[str, Any]
) -> dict[str, Any]:
    """Of the variables those that may have such values, in the shape that they may have."""
    left = {name: shapes(value) for name, value in wanted.items()}
    while True:
        told = {name: forms[0] for name, forms in left.items() if forms}
        file.write_text(yaml.safe_dump({"all": {"hosts": {host: {**own, **told}}}}))
        try:
            for plan in prepare(Choice(inventory=(str(file),)), cwd=file.parent).climb.hosts:
                endpoint(plan.host)
        except UsageError as error:
            refused = set(NAME.findall(str(error))) & told.keys()
            assert refused, error
            for name in refused:
                left[name].pop(0)
        else:
            return told


@pytest.mark.slow
@pytest.mark.sshd
@pytest.mark.timeout(240)
def test_no_value_of_an_inventory_is_run(
    fleet_of: Callable[..., SshdFleet], tmp_path: Path
) -> None:
    """One host for each kind of value in all variables, one for each in what it is reached by."""
    canary = tmp_path / "canary"
    canary.mkdir(mode=0o777)
    canary.chmod(0o777)
    kinds = [kind.format(canary, MADE) for kind in KINDS]
    fleet = fleet_of(len(kinds), servers=2)
    for tool in ("all_reduce_perf", "ib_write_bw", "mpirun"):
        fleet.tool(tool, 'for word in "$@"; do printf "%s\\n" "$word"; done; exit 3')
    own = fleet.variables(fleet.names[0])
    hosts: dict[str, dict[str, Any]] = {}
    named = [name for name in VARIABLES if not ELSEWHERE.search(name)]
    for host, kind in zip(fleet.names, kinds, strict=True):
        told = accepted(tmp_path / "try.yaml", host, dict.fromkeys(named, kind), own)
        assert len(told) > 8, told
        hosts[host] = {**own, **told}
        for name in CONNECTION:
            reached_by = accepted(tmp_path / "try.yaml", host, {name: kind}, own)
            if reached_by:
                hosts[f"{host}-{name}"] = {**own, **reached_by}
    fleet.inventory.write_text(yaml.safe_dump({"all": {"hosts": hosts}}, sort_keys=False))
    base = tmp_path / "reports"
    words = ["run", "-i", fleet.inventory, "--known-hosts", fleet.known_hosts, "-q"]
    limits = ["--host-deadline", 60, "--connect-timeout", 5, "--allow", "load", "--no-progress"]
    running = begin([*words, *limits], base)
    ended = running.ended(200)
    assert ended.code in (1, 3), ended.err
    assert ended.results["run"]["hosts"] == list(hosts)
    assert not ended.results["run"]["not_reached"].keys() & set(fleet.names)
    assert list(canary.iterdir()) == []
    assert list(tmp_path.rglob(MADE)) == []
    assert_nothing_runs(ended.run.name)
    assert climb(["report", "last"], base).code == ended.code
