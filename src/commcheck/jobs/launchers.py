"""Command lines that start one program on many hosts: Open MPI, MPICH, Slurm, MPIJobs. Pure.

commcheck starts the launcher over SSH on one of the hosts, in the session ``<run>.job-<n>``; every
process it starts gets that mark into its environment, so that it can be found and ended.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from commcheck.errors import CommandMissing, Unjudgeable
from commcheck.jobs import pods
from commcheck.jobs.job import Member
from commcheck.lazy import dataclass

MARK: Final = "COMMCHECK_MARK"

_END_S: Final = 20.0
"""The launcher's own limit ends this much before ours: it then says why."""

# The runner's environment holds the mark; Open MPI's daemons on other hosts get it from here.
_OPENMPI: Final = {
    "openmpi": 'exec "$0" --mca orte_launch_agent "env COMMCHECK_MARK=$COMMCHECK_MARK orted" "$@"',
    "openmpi5": 'exec "$0" --prtemca prte_launch_agent "env COMMCHECK_MARK=$COMMCHECK_MARK prted" '
    '"$@"',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is to run: words, processes on each host, and the environment it needs."""

    argv: tuple[str, ...]
    per_host: int
    env: Mapping[str, str]
    limit_s: float


def command(program: Program, head: Member, members: Sequence[Member]) -> tuple[str, ...]:
    """The words that start the program, from ``head`` on all ``members``.

    Raises ``Unjudgeable`` where the head has nothing to launch with.
    """
    if pods.is_mpijob(members[0]):
        return pods.command(program, head, members)
    kind = _kind(head, members[0])
    mpirun = head.programs.get("mpirun", "mpirun")
    if kind in _OPENMPI:
        return ("sh", "-c", _OPENMPI[kind], mpirun, *_openmpi(kind, program, head, members))
    if kind == "mpich":
        return _mpich(mpirun, program, members)
    return _srun(program, members)


def alone(program: Program) -> tuple[str, ...]:
    """The words that start the program on one host without a launcher."""
    return _with_env(program.env, program.argv)


def _kind(head: Member, first: Member) -> str:
    wanted = first.site.launcher.value
    # hydra has no way to a pod but ssh.
    usable = _OPENMPI.keys() if wanted == "kubectl" else {*_OPENMPI, "mpich"}
    mpi = sorted(head.launchers & usable)
    if wanted in ("auto", "mpirun", "kubectl") and mpi:
        return mpi[0]
    if wanted in ("auto", "srun") and "srun" in head.launchers:
        return "srun"
    missing = {"auto": "mpirun or srun", "kubectl": "mpirun of Open MPI"}.get(wanted, wanted)
    raise CommandMissing(
        f"{head.name} has no {missing} to launch with",
        "install Open MPI, or add its folder to commcheck_path; without MPI between hosts only "
        "physical.rdma-pairs can run",
    )


def _with_env(env: Mapping[str, str], argv: tuple[str, ...]) -> tuple[str, ...]:
    if not env:
        return argv
    return ("env", *(f"{name}={value}" for name, value in env.items()), *argv)


def _openmpi(
    kind: str, program: Program, head: Member, members: Sequence[Member]
) -> tuple[str, ...]:
    """Source: mpirun(1) of Open MPI 4.1 and 5.0, prterun(1)."""
    mca = "--mca" if kind == "openmpi" else "--prtemca"
    plm = "plm_rsh" if kind == "openmpi" else "plm_ssh"
    agent = pods.exec_agent(head, members)
    each = program.per_host
    words = ["--allow-run-as-root"] if head.machine.uid == 0 else []
    words += ["-H", ",".join(f"{member.address}:{each}" for member in members)]
    words += ["-np", str(each * len(members)), "--map-by", f"ppr:{each}:node"]
    words += ["--bind-to", "none", "--timeout", f"{max(30.0, program.limit_s - _END_S):.0f}"]
    if agent:
        # Each pod is reached from the head, which alone has the right to.
        words += [mca, f"{plm}_agent", agent, mca, f"{plm}_no_tree_spawn", "1"]
    else:
        words += [mca, f"{plm}_args", " ".join(_ssh_words(members))]
    words += ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self,vader"]
    if kind == "openmpi5":
        words[-1] = "tcp,self,sm"
    interface = members[0].site.interface.value
    if interface:
        words += ["--mca", "btl_tcp_if_include", interface]
        words += [mca, "oob_tcp_if_include", interface]
    words += members[0].site.args.value
    words += [word for name in (MARK, "PATH") for word in ("-x", name)]
    words += [word for name, value in program.env.items() for word in ("-x", f"{name}={value}")]
    return (*words, *program.argv)


def _ssh_words(members: Sequence[Member]) -> list[str]:
    """Options of the launcher's own ssh: it must never ask, and find the port we found."""
    words = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]
    ports = {member.host.variables.get("ansible_port") for member in members}
    port = ports.pop() if len(ports) == 1 else None
    if isinstance(port, int | str) and str(port).isdigit():
        words += ["-p", str(port)]
    return words


def _mpich(mpirun: str, program: Program, members: Sequence[Member]) -> tuple[str, ...]:
    """hydra hands the whole environment on, the mark with it. Source: mpiexec.hydra -help."""
    each = program.per_host
    words = [mpirun, "-hosts", ",".join(f"{member.address}:{each}" for member in members)]
    words += ["-n", str(each * len(members)), "-ppn", str(each)]
    if members[0].site.interface.value and "/" not in members[0].site.interface.value:
        words += ["-iface", members[0].site.interface.value]
    words += members[0].site.args.value
    for name, value in program.env.items():
        words += ["-genv", name, value]
    extra = {"HYDRA_LAUNCHER_EXTRA_ARGS": " ".join(_ssh_words(members))}
    return _with_env(extra, (*words, *program.argv))


def _srun(program: Program, members: Sequence[Member]) -> tuple[str, ...]:
    """Slurm hands the whole environment on. Source: srun(1)."""
    each = program.per_host
    names = [member.hostname for member in members]
    if not all(names):
        raise Unjudgeable("srun wants the hosts' own names, and one of them does not tell its own")
    words = ["srun", "--kill-on-bad-exit=1", "--immediate=60", "-N", str(len(members))]
    words += [f"--ntasks-per-node={each}", "-w", ",".join(names)]
    words += [f"--time={max(1, math.ceil(program.limit_s / 60))}", "--export=ALL"]
    if not any(word.startswith("--mpi") for word in members[0].site.args.value):
        words.append("--mpi=pmix")
    words += members[0].site.args.value
    return _with_env(program.env, (*words, *program.argv))
