"""The commands that look things up, as a person calls them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

COMMCHECK = Path(sys.executable).parent / "commcheck"
RECORDED = Path(__file__).parent / "recorded"
QOS = RECORDED / "mlnx_qos" / "good-dscp-prio3.txt"


def commcheck(cwd: Path, *words: object, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMCHECK, *map(str, words)],
        cwd=cwd,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )


def test_read_prints_the_facts_of_a_saved_output(tmp_path: Path) -> None:
    ran = commcheck(tmp_path, "read", "mlnx_qos", QOS)
    read = json.loads(ran.stdout)
    assert (ran.returncode, read["tool"]) == (0, "mlnx_qos")
    assert (read["facts"]["trust"], read["facts"]["pfc"]) == ("dscp", [3])
    piped = commcheck(tmp_path, "read", "mlnx_qos", "-", text=QOS.read_text())
    assert json.loads(piped.stdout) == read


def test_read_prints_json_and_nothing_beyond_it(tmp_path: Path) -> None:
    dark = QOS.parents[1] / "ethtool" / "module-dark-inf.txt"

    def refuse(word: str) -> None:
        pytest.fail(f"{word} is no JSON")

    ran = commcheck(tmp_path, "read", "ethtool-module", dark)
    read = json.loads(ran.stdout, parse_constant=refuse)
    assert read["facts"]["rx_dbm"][0] == [1, "-inf"]
    assert read["facts"]["tx_dbm"][0] == [1, 0.95]


def test_a_dry_run_says_how_each_host_would_be_reached(tmp_path: Path) -> None:
    (tmp_path / "ssh.cfg").write_text("")
    (tmp_path / "hosts.ini").write_text(
        "[gpu]\n"
        "gpu-01 ansible_ssh_common_args='-A -J b1,b2'\n"
        "gpu-02 ansible_ssh_common_args='-F ssh.cfg -o ProxyCommand=\"ssh -W %h:%p b3\"'\n"
        "gpu-03 ansible_user='{{ vault_user }}' ansible_port='{{ ssh_port | default(2200) }}'\n"
    )
    dry = ["run", "-i", "hosts.ini", "-t", "physical.reachable", "--dry-run"]
    ran = commcheck(tmp_path, *dry)
    assert ran.returncode == 2
    assert "hosts.ini:3: error: ansible_ssh_common_args: '-F ssh.cfg' is not followed" in ran.stderr
    assert "--ssh-config ssh.cfg" in ran.stderr
    ran = commcheck(tmp_path, *dry, "--ssh-config", "ssh.cfg")
    assert "hosts.ini:4: error: ansible_user: it refers to 'vault_user'" in ran.stderr
    ran = commcheck(tmp_path, *dry, "--ssh-config", "ssh.cfg", "-u", "joe")
    assert ran.returncode == 0, ran.stderr
    assert [line for line in ran.stdout.splitlines() if line.startswith("gpu-")] == [
        "gpu-01  ssh gpu-01 via b1 via b2",
        "gpu-02  ssh gpu-02 via ProxyCommand ssh -W %h:%p b3",
        "gpu-03  ssh gpu-03:2200",
    ]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["read", "mlnx_qos", "no-such-file"], "no-such-file: error: cannot be read"),
        (["read", "mlnx_qos", __file__], "[ParseError]"),
        (["read", "mlnx_qoss", QOS], "did you mean 'mlnx_qos'?"),
        (["read", "mlnx_qos", QOS, QOS], "mlnx_qos takes 1 file"),
        (["explain", "physical.pfc-enable"], "did you mean 'physical.pfc-enabled'?"),
        (["run"], "no inventory"),
        (["run", "-i", "a,", "--checks", "nowhere"], "no such folder"),
        (["run", "-i", "a,", "-l", "", "--allow", "load"], "'--limit' (env var"),
        (["run", "-i", "a,", "--again", ""], "it is empty; say which is meant"),
        (["run", "-i", "a,", "-i", ""], "no inventory: name one with -i"),
        (["run", "-i", "a,", "--key-file", "my_key"], "read, No such file or directory: my_key"),
        (["run", "-i", "a,", "-t", "physical.nic-mtx"], "did you mean 'physical.nic-mtu'?"),
        (["run", "-i", "a,", "-t", "*.nic-mtu", "-t", "physical"], "did you mean 'physical.*'?"),
        (["run", "-i", "a,", "--skip", "collective-fleet"], "'physical.collective-fleet'?"),
        (["report"], "reports"),
        (["rum"], "No such command"),
        (["demo", "--fault", "pfc-of"], "pfc-off"),
    ],
)
def test_wrong_words_are_one_clear_line_and_exit_2(
    tmp_path: Path, words: list[object], says: str
) -> None:
    ran = commcheck(tmp_path, *words)
    assert ran.returncode == 2
    assert says in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["run", "-i", "nowhere"],
        ["run", "-i", "a,", "no-playbook"],
        ["run", "-i", "a,", "--executor", "no:module"],
        ["run", "--again", "last"],
        ["report", "last"],
        ["judge", "last"],
        ["merge", "last"],
    ],
)
def test_what_is_refused_leaves_no_former_junit_file(tmp_path: Path, words: list[str]) -> None:
    """A CI job publishes what it finds: yesterday's green results are not today's."""
    former = tmp_path / "junit" / "TEST-commcheck-physical.xml"
    former.parent.mkdir()
    former.touch()
    (tmp_path / "junit" / "TEST-other.xml").touch()
    dry = commcheck(tmp_path, "run", "-i", "a,", "--dry-run", "--junit", "junit")
    assert dry.returncode == 0
    assert former.exists()
    assert commcheck(tmp_path, *words, "--junit", "junit").returncode == 2
    assert [path.name for path in former.parent.iterdir()] == ["TEST-other.xml"]


def test_a_name_like_that_of_a_secret_hides_no_reason(tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("root:x:0:0::/:/bin/sh\n")
    swept = commcheck(tmp_path, "analyze", "sweep", "passwd")
    assert swept.returncode == 2
    assert swept.stderr.startswith("passwd: error: ")
    (tmp_path / "secrets.yaml").write_text(
        "all: {hosts: {gpu-key: {ansible_password: '{{ vault_x }}', a_token: hush}}}\n"
    )
    run = commcheck(tmp_path, "run", "-i", "secrets.yaml")
    assert run.returncode == 2
    assert "ansible_password is not used: a template fills it; use a key" in run.stderr
    assert "***" not in swept.stderr + run.stderr


def test_explain_knows_every_check_and_every_cause(tmp_path: Path) -> None:
    listed = commcheck(tmp_path, "list", "checks", "--format", "json")
    checks = [row["check"] for row in json.loads(listed.stdout)]
    assert len(checks) >= 19
    page = commcheck(tmp_path, "explain", "physical.pfc-enabled").stdout
    for words in ("Why:", "mlnx_qos -i {netdev}", "commcheck_roce_priority", "pfc-off", "effect:"):
        assert words in page
    cause = commcheck(tmp_path, "explain", "pfc-off").stdout
    assert cause.startswith("a cause of physical.pfc-enabled")


def test_lists(tmp_path: Path) -> None:
    hosts = commcheck(tmp_path, "list", "hosts", "-i", "b,a,", "--format", "json")
    assert [row["host"] for row in json.loads(hosts.stdout)] == ["b", "a"]
    tools = commcheck(tmp_path, "list", "tools")
    assert "mlnx_qos -i {netdev}" in tools.stdout
    assert "pfc-off" in commcheck(tmp_path, "list", "faults").stdout
    assert "pfc-off  " in commcheck(tmp_path, "list", "causes").stdout
    plays = json.loads(commcheck(tmp_path, "list", "plays", "--format", "json").stdout)
    assert ("default.yaml", "physical") in {(row["playbook"], row["layer"]) for row in plays}


def test_lint_and_schema(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("name: x\nplays:\n  - layer: physical\n    checks: [physical.nic-mtuu]\n")
    ran = commcheck(tmp_path, "lint", "p.yaml")
    assert ran.returncode == 2
    assert ran.stdout.startswith("p.yaml:4:14: error: no check 'physical.nic-mtuu'")
    schema = commcheck(tmp_path, "schema", "playbook").stdout
    assert "physical.pfc-enabled" in schema
    json.loads(schema)


def test_help_names_every_command(tmp_path: Path) -> None:
    page = commcheck(tmp_path, "--help").stdout
    for command in (
        "run",
        "demo",
        "report",
        "judge",
        "merge",
        "diff",
        "list",
        "explain",
        "read",
        "lint",
        "schema",
    ):
        assert f"\n  {command} " in page


def test_a_reader_that_leaves_is_no_fault(tmp_path: Path) -> None:
    shell = f"{COMMCHECK} list tools | true; echo ${{PIPESTATUS[0]}}"
    ran = subprocess.run(
        ["bash", "-c", shell], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() in ("0", "141")
    assert "Traceback" not in ran.stderr
