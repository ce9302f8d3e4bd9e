"""How a run reaches from one pod to the others, and what an operator may allow."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from commcheck.cli import main
from commcheck.errors import CommandMissing
from commcheck.jobs.job import Member
from commcheck.jobs.launchers import Program, command
from commcheck.loads import site_of
from commcheck.model import Host, Machine

PROGRAM = Program(argv=("perf",), per_host=8, env={}, limit_s=100.0)


def member(name: str, *programs: str, launchers: str = "openmpi", **variables: object) -> Member:
    host = Host(name, {"ansible_connection": "kubectl", **variables})
    return Member(
        host=host,
        machine=Machine(name, "gpu-roce", uid=1000),
        site=site_of(host, ""),
        address=name,
        launchers=frozenset({launchers}),
        programs={each: f"/usr/bin/{each}" for each in programs},
    )


def words(*members: Member) -> str:
    return " ".join(command(PROGRAM, members[0], members))


def agent_of(said: str) -> list[str]:
    """The words that Open MPI makes of the agent: it splits them at blanks."""
    return said.partition("_agent sh -c ")[2].partition(" --")[0].split(" ")


def test_pods_are_reached_by_kubectl_where_the_first_has_it() -> None:
    pods = [member(f"p-{n}", "kubectl", ansible_kubectl_container="main") for n in (0, 1)]
    said = words(*pods)
    assert "-H p-0:8,p-1:8 -np 16" in said
    assert "--mca plm_rsh_no_tree_spawn 1" in said
    assert "plm_rsh_args" not in said
    prted = words(*(member(f"p-{n}", "kubectl", launchers="openmpi5") for n in (0, 1)))
    assert "--prtemca plm_ssh_agent sh -c exec${IFS}" in prted


def test_the_agent_hands_the_line_to_a_shell_in_the_pod(tmp_path: Path) -> None:
    (tmp_path / "kubectl").write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    (tmp_path / "kubectl").chmod(0o755)
    pods = [member(f"p-{n}", "kubectl", ansible_kubectl_container="main") for n in (0, 1)]
    [script] = agent_of(words(*pods))
    script = script.replace("/usr/bin/kubectl", str(tmp_path / "kubectl"))
    line = "PATH=/x:$PATH ; orted -mca ess 'a b'"
    done = subprocess.run(["sh", "-c", script, "p-1", line], capture_output=True, text=True)
    wanted = ["exec", "-i", "p-1", "--container=main", "--", "sh", "-c", line]
    assert done.stdout == "".join(f"<{each}>" for each in wanted)
    assert shlex.split(script)  # balanced


@pytest.mark.parametrize(
    "pods",
    [
        [member("p-0"), member("p-1")],
        [member("p-0", "kubectl"), member("gpu-1", ansible_connection="ssh")],
        [
            member("p-0", "kubectl", ansible_connection="ssh"),
            member("n", commcheck_kubectl_node="n"),
        ],
    ],
)
def test_else_by_ssh(pods: list[Member]) -> None:
    said = words(*pods)
    assert "plm_rsh_args" in said
    assert "_agent sh" not in said


@pytest.mark.parametrize(
    ("pods", "says"),
    [
        ([member("p-0", commcheck_launcher="kubectl")] * 2, "no kubectl, by which mpirun"),
        (
            [member("h", "kubectl", ansible_connection="ssh", commcheck_launcher="kubectl")] * 2,
            "not all hosts are pods",
        ),
        (
            [member("p", "kubectl", launchers="mpich", commcheck_launcher="kubectl")] * 2,
            "no mpirun of Open MPI",
        ),
    ],
)
def test_what_lacks(pods: list[Member], says: str) -> None:
    with pytest.raises(CommandMissing, match=says):
        words(*pods)


@pytest.mark.parametrize(
    ("allow", "fault"),
    [("load,debug-pod", False), ("", False), ("debug-pods", True), ("load;write", True)],
)
def test_what_may_be_allowed(allow: str, fault: bool) -> None:
    ran = CliRunner().invoke(main, ["run", "-i", "x,", "--dry-run", "-q", "--allow", allow])
    assert (ran.exit_code == 2) is fault, ran.output
