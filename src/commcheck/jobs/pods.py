"""How runs are launched on Kubernetes: as MPIJobs on nodes, or by mpirun from pod to pod. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from commcheck.errors import CommandMissing, InventoryError, Unjudgeable
from commcheck.inventory.endpoint import cluster_of, endpoint
from commcheck.jobs import scripts
from commcheck.jobs.job import Member
from commcheck.kube import mpijob
from commcheck.kube.mpijob import Job
from commcheck.kube.place import KUBECTL

if TYPE_CHECKING:
    from commcheck.jobs.launchers import Program

_END_S: Final = 20.0
"""An MPIJob that has not begun so long before our own limit is given up, with what is known."""


def is_mpijob(member: Member) -> bool:
    """True where runs are MPIJobs, whose pods bring the programs with them."""
    return member.site.launcher.value == "mpijob"


def node_of(member: Member) -> str:
    """The name by which the cluster knows the host."""
    declared = member.host.variables.get("commcheck_kubectl_node")
    return str(declared) if declared else member.machine.hostname.lower()


def command(program: Program, head: Member, members: Sequence[Member]) -> tuple[str, ...]:
    """The words that launch an MPIJob from ``head`` on ``members``, which are its nodes.

    Raises ``Unjudgeable`` where the inventory says too little, or the head has no kubectl.
    """
    settings = members[0].site.mpijob.value
    if settings is None:
        raise Unjudgeable("commcheck_launcher is mpijob, and commcheck_mpijob names no image")
    if KUBECTL not in head.programs:
        raise CommandMissing(
            f"{head.name} has no kubectl to launch with",
            "name a host that has it with commcheck_launch_host; this machine, say, as a host "
            "with ansible_connection: local",
        )
    try:
        cluster = cluster_of(head.host)
    except InventoryError as error:
        raise Unjudgeable(str(error)) from error
    if settings.namespace:
        cluster = replace(cluster, namespace=settings.namespace)
    job = Job(
        nodes=[node_of(member) for member in members],
        per_node=program.per_host,
        argv=_mpirun(program, len(members), members[0], settings),
        limit_s=program.limit_s,
    )
    text = json.dumps(mpijob.manifest(job, settings), separators=(",", ":"))
    begins_s = max(5.0, program.limit_s - _END_S)
    words = (head.programs[KUBECTL], *cluster.words[1:])
    return ("sh", "-c", scripts.MPIJOB, "sh", text, f"{begins_s:.0f}", *words)


def _mpirun(
    program: Program, hosts: int, first: Member, settings: mpijob.Settings
) -> tuple[str, ...]:
    """What the launcher runs; where the workers are, the operator tells it by its environment."""
    each = program.per_host
    words = ["mpirun", "--allow-run-as-root", "-np", str(each * hosts)]
    words += ["--map-by", f"ppr:{each}:node", "--bind-to", "none"]
    words += ["--mca", "plm_rsh_args", " ".join(mpijob.ssh_options(settings))]
    words += ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]
    if interface := first.site.interface.value:
        words += [
            "--mca",
            "btl_tcp_if_include",
            interface,
            "--mca",
            "oob_tcp_if_include",
            interface,
        ]
    words += first.site.args.value
    words += [word for name in ("PATH", "LD_LIBRARY_PATH") for word in ("-x", name)]
    words += [word for name, value in program.env.items() for word in ("-x", f"{name}={value}")]
    return (*words, *program.argv)


def exec_agent(head: Member, members: Sequence[Member]) -> str:
    """What Open MPI calls to start its daemon in a pod: "" where it is to be ssh.

    It appends the pod's name and a line for a shell. Open MPI splits the words at blanks and
    knows no quotes, so that there are none in them. Raises ``CommandMissing``.
    """
    wanted = members[0].site.launcher.value
    places = [endpoint(member.host).place for member in members]
    if not all(place and place.pod for place in places):
        if wanted == "kubectl":
            raise CommandMissing("commcheck_launcher is kubectl, and not all hosts are pods")
        return ""
    if KUBECTL not in head.programs:
        if wanted == "kubectl":
            raise CommandMissing(
                f"{head.name} has no kubectl, by which mpirun would reach the other pods",
                "put it into the image, with a service account that may create pods/exec; or run "
                "sshd in the pods (commcheck_launcher: mpirun); or load the nodes "
                "(commcheck_launcher: mpijob)",
            )
        return ""
    containers = {place.container for place in places if place}
    chosen = [f"--container={each}" for each in containers if len(containers) == 1 and each]
    words = [
        "exec",
        head.programs[KUBECTL],
        "exec",
        "-i",
        '"$0"',
        *chosen,
        "--",
        "sh",
        "-c",
        '"$*"',
    ]
    return f"sh -c {'${IFS}'.join(words)}"


def hostname_of(members: Sequence[Member]) -> dict[str, str]:
    """What machines call themselves, by the node's name."""
    return {node_of(member): member.hostname for member in members}
