"""Inventories that a program prints: through ansible-inventory, and run directly."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from commcheck.errors import InventoryError
from commcheck.inventory import dynamic
from commcheck.inventory.load import load

ANSWER = """{
  "gpu": {"hosts": ["n2", "n1"], "vars": {"ansible_user": "sre", "v": "gpu"}},
  "top": {"children": ["npu", "gpu"], "vars": {"v": "top"}},
  "npu": ["a1"],
  "_meta": {"hostvars": {"n1": {"x": [1], "pw": {"__ansible_vault": "zz"},
                                "raw": {"__ansible_unsafe": "{{ y }}"}}}}
}"""


def program(root: Path, body: str, name: str = "inv.sh", mode: int = 0o755) -> str:
    path = root / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(mode)
    return f"./{name}"


def only_problem(root: Path, source: str) -> str:
    with pytest.raises(InventoryError) as caught:
        load([source], cwd=root)
    (line,) = caught.value.problems
    return line


def test_a_command_is_run_directly(tmp_path: Path) -> None:
    script = program(tmp_path, f"cat <<'EOF'\n{ANSWER}\nEOF")
    inventory = load([f"exec:{script} --list"], cwd=tmp_path)
    assert [host.name for host in inventory.hosts] == ["a1", "n2", "n1"]
    last = inventory.hosts[-1]
    assert last.variables == {
        "ansible_user": "sre",
        "v": "gpu",
        "x": [1],
        "pw": "(not read: vault)",
        "raw": "{{ y }}",
    }
    assert last.groups == ("top", "gpu")
    assert str(last.origin) == f"exec:{script} --list:1"
    assert inventory.digest == load([f"exec:{script} --list"], cwd=tmp_path).digest
    load([f"exec:{script} ; touch made $(touch made)"], cwd=tmp_path)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("exit 3", "error: exit code 3: it says nothing [dynamic]"),
        ("echo 'Error: no token' >&2; echo bye >&2; exit 1",
         "error: exit code 1: 'Error: no token' [dynamic]"),
        ("echo '{'", "1:1: error: its answer is not JSON"),
        ("echo '[]'", "1:1: error: its answer is no JSON object of groups [json]"),
        ("echo '{\"g\": 5}'", "1:1: error: in its answer group 'g' is no JSON object [json]"),
        ("echo '{\"g\": {\"hosts\": [1]}}'",
         "1:1: error: in its answer 'hosts' is no list of names [json]"),
        ("echo '{\"g\": [\"\\ud800\"]}'", "1:1: error: its answer is unreadable"),
        ("echo '{}'", "error: there is no host in the inventory [no-host]"),
        ("printf '\\377'", "1:1: error: byte 0xff is not UTF-8 [encoding]"),
    ],
)  # fmt: skip
def test_an_answer_that_is_none(tmp_path: Path, body: str, text: str) -> None:
    line = only_problem(tmp_path, f"exec:{program(tmp_path, body)}")
    assert line.startswith("exec:./inv.sh:")
    assert text in line.replace("2:1: ", "1:1: ")


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    assert only_problem(tmp_path, "exec:./none --list") == (
        "exec:./none --list: error: cannot be run: No such file or directory [dynamic]"
    )
    assert only_problem(tmp_path, "exec:") == "exec:: error: no command behind exec: [dynamic]"
    assert only_problem(tmp_path, "exec:'") == "exec:': error: no closing quotation [dynamic]"


def _is_gone(stat: Path) -> bool:
    """A killed process takes a moment to die where the machine is busy; a living one never does."""
    for _ in range(100):
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


def test_a_program_that_hangs_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dynamic, "LIMIT_S", 0.3)
    script = program(tmp_path, "sleep 60 & echo $! >child; wait")
    began = time.monotonic()
    assert only_problem(tmp_path, f"exec:{script}") == (
        "exec:./inv.sh: error: no answer within 0.3 s [dynamic]"
    )
    assert time.monotonic() - began < 5
    child = Path("/proc") / (tmp_path / "child").read_text().strip() / "stat"
    assert _is_gone(child)


@pytest.fixture
def with_ansible() -> None:
    if not Path(sys.executable).with_name("ansible-inventory").exists():
        pytest.skip("ansible-core is not installed")


@pytest.mark.usefixtures("with_ansible")
def test_a_program_and_a_plugin_are_read_by_ansible(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "group_vars").mkdir(parents=True)
    program(site, f"cat <<'EOF'\n{ANSWER}\nEOF", "10-inv.sh")
    (site / "20-more.ini").write_text("[npu]\na2 kind=b\n")
    (site / "30-built.yml").write_text(
        "plugin: ansible.builtin.constructed\nstrict: true\ngroups: {kind_b: kind is defined}\n"
    )
    (site / "group_vars/npu.yml").write_text("from_file: 1\n")
    inventory = load(["site"], cwd=tmp_path)
    assert inventory.groups["kind_b"] == ("a2",)
    assert inventory.groups["top"] == ("a1", "a2", "n2", "n1")
    variables = {host.name: host.variables for host in inventory.hosts}
    assert variables["a2"] == {"v": "top", "from_file": 1, "kind": "b"}
    assert variables["n1"]["pw"] == "(not read: vault)"


@pytest.mark.usefixtures("with_ansible")
def test_ansibles_own_complaint_is_passed_on(tmp_path: Path) -> None:
    line = only_problem(tmp_path, program(tmp_path, "exit 3"))
    assert line.startswith("./inv.sh: error: exit code ")
    assert "Failed to parse" in line
    assert line.endswith(" [dynamic]")


def test_without_ansible_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    (tmp_path / "plugin.yml").write_text("plugin: amazon.aws.aws_ec2\n")
    for source in ("plugin.yml", program(tmp_path, "exit 0")):
        assert only_problem(tmp_path, source) == (
            f"{source}: error: a program or a plugin, and ansible-inventory, which runs it, is not "
            "on PATH: install ansible-core, or run a program directly with "
            "-i 'exec:./program --list' [dynamic]"
        )


def test_a_script_that_is_not_executable_is_read_as_text(tmp_path: Path) -> None:
    source = program(tmp_path, "[gpu]\nnode01", "hosts", 0o644)
    assert [host.name for host in load([source], cwd=tmp_path).hosts] == ["node01"]
