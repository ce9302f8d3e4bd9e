"""Incidents on the embedded fleet: what the diagnosis makes of them, from the hosts to the page.

One table. Those that load the fabric go over SSH; the others are climbed without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import yaml

from commcheck.cli import main
from commcheck.demo import command
from commcheck.demo.fault import known_faults
from commcheck.demo.persona import DEFAULT, cast
from commcheck.demo.state import HostState
from commcheck.diagnose import Diagnosis, Group, diagnose
from commcheck.model import Status
from commcheck.report.folder import RunFolder
from tests.demo.instant import climb

FAIL, ERROR, WARN, SKIP, PASS = (
    Status.FAIL, Status.ERROR, Status.WARN, Status.SKIP, Status.PASS,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """What is wrong on which hosts (``1`` is gpu-01), and what the diagnosis has to say of it.

    ``causes``: all of them with their hosts, in the order told, "" for no one in particular.
    ``shares``: what the hosts of the first have in common. ``fix``: the beginning of its first
    remedy. ``folded``: checks that suffer from the first, with their hosts.
    """

    faults: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    variables: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # of the hosts' jobs
    hosts: int = 4
    others: tuple[str, ...] = ()  # personas of some more hosts
    leaf: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    waived: tuple[str, int] | None = None
    loads: tuple[str, ...] = ()
    status: Status = FAIL
    says: str
    more: tuple[str, ...] = ()
    causes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    shares: tuple[str, ...] = ()
    fix: str = ""
    folded: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    against: str = ""
    ladder: str = ""


ALL = (1, 2, 3, 4)
INCIDENTS = {
    "a healthy fleet": Incident(
        status=PASS,
        says="All four layers pass on 4 hosts",
        ladder="pass pass pass pass",
    ),
    "one host": Incident(
        faults={"pfc-off": (3,)},
        says="Physical layer is where it breaks: PFC is off, 1 of 4 hosts",
        causes={"pfc-off": (3,)},
        shares=("host",),
        fix="lldptool -tni ens1np0",
        ladder="breaks-here pass-so-far pass-so-far pass-so-far",
    ),
    "the whole fleet is set wrong": Incident(
        faults={"ecn-off": ALL},
        says="Physical layer is where it breaks: ECN is off for RoCE, 4 of 4 hosts",
        causes={"ecn-off": ALL},
        shares=("everything",),
        fix="echo 1 > /sys/class/net/ens1np0/ecn/roce_np/enable/3",
        against="physical.pause-storm passes on 4 of them, so what this leads to is not seen",
        ladder="breaks-here not-climbed not-climbed not-climbed",
    ),
    "one leaf switch": Incident(
        faults={"switch-pfc-off": (1, 2)},
        hosts=5,
        leaf={"leaf-07": (1, 2), "leaf-08": (3, 4, 5)},
        says="Physical layer is where it breaks: Switch has PFC off for RoCE, 2 of 5 hosts",
        causes={"switch-pfc-off": (1, 2)},
        shares=("exactly", "exactly"),
        fix="lldpctl -f json ens1np0",
        against="physical.roce-retransmit passes on 2 of them, though it would suffer from this",
        ladder="breaks-here pass-so-far pass-so-far pass-so-far",
    ),
    "one rail on several hosts": Incident(
        faults={"speed-100g": (2, 4)},
        says="Physical layer is where it breaks: NIC port below line rate, 2 of 4 hosts",
        causes={"nic-speed-low": (2, 4)},
        shares=("rail",),
        fix="ethtool ens2np0",
        ladder="breaks-here pass-so-far pass-so-far pass-so-far",
    ),
    "a host that drifted": Incident(
        faults={"firmware-old": (2,), "mtu-odd": (2,)},
        status=WARN,
        says="All four layers pass on 4 hosts",
        causes={"nic-setting-differs": (2,), "nic-firmware-differs": (2,)},
        shares=("host",),
        fix="Find out which side is right",
        ladder="pass pass pass pass",
    ),
    "hosts that do not answer": Incident(
        faults={"unreachable": (2, 4)},
        status=ERROR,
        says="No failure found, but 2 of 4 hosts could not be judged",
        causes={"Unreachable": (2, 4)},
        ladder="partly-judged pass-so-far pass-so-far pass-so-far",
    ),
    "a tool that is missing": Incident(
        faults={"tool-missing": (2,)},
        status=ERROR,
        says="No failure found, but 1 of 4 hosts could not be judged",
        causes={"CommandFailed": (2,)},
        ladder="partly-judged pass pass pass",
    ),
    "a fault that is waived": Incident(
        faults={"damaged-cable": (3,)},
        waived=("physical.nic-symbol-errors", 3),
        status=PASS,
        says="All four layers pass on 4 hosts",
        ladder="pass pass pass pass",
    ),
    "a damaged cable and what it brings": Incident(
        faults={"damaged-cable": (2,), "packets-lost": (2,)},
        says="Physical layer is where it breaks: Damaged packets on a NIC port, 1 of 4 hosts",
        causes={"nic-symbol-errors": (2,)},
        shares=("host",),
        fix="ethtool -m ens2np0",
        folded={"physical.roce-retransmit": (2,)},
        ladder="breaks-here pass-so-far pass-so-far pass-so-far",
    ),
    "a dark lane and what it brings": Incident(
        faults={"dark-lane": (2,), "bit-errors": (2,)},
        says="Physical layer is where it breaks: Too little light on a lane, 1 of 4 hosts",
        causes={"module-rx-power-low": (2,)},
        shares=("host",),
        fix="ethtool -m ens1np0",
        folded={"physical.nic-ber": (2,)},
        # A link may flap for it or not, and what did not speaks neither for it nor against.
        against="physical.nic-symbol-errors passes on 1 of them, though it would suffer",
        ladder="breaks-here pass-so-far pass-so-far pass-so-far",
    ),
    "two causes in one layer": Incident(
        faults={"ecn-off": (1, 2, 3), "pfc-off": (4,)},
        says="Physical layer is where it breaks: ECN is off for RoCE, 3 of 4 hosts, and 1 more",
        causes={"ecn-off": (1, 2, 3), "pfc-off": (4,)},
        shares=("nothing",),
        fix="echo 1 > /sys/class/net/ens1np0/ecn/roce_np/enable/3",
        against="physical.pause-storm passes on 3 of them",
        ladder="breaks-here not-climbed not-climbed not-climbed",
    ),
    "the environment of every rank": Incident(
        faults={"env-socket-forced": ALL},
        says="Library layer is where it breaks: The environment forces TCP, 4 of 4 hosts",
        causes={"env-tcp-forced": ALL},
        shares=("everything",),
        fix="Unset it",
        folded={"library.log": ALL},
        ladder="pass breaks-here not-climbed not-climbed",
    ),
    "one host of a job is set otherwise": Incident(
        variables={"NCCL_ALGO=Tree": (2,)},
        says="Library layer is where it breaks: Ranks of one job have different settings, 1 of 4",
        causes={"env-ranks-differ": (2,), "env-tuning-forced": (2,), "nccl-forced-algorithm": (2,)},
        shares=("host",),
        fix="Set it once for all",
        ladder="pass breaks-here pass pass",
    ),
    "one host of a job marks its packets otherwise": Incident(
        variables={"NCCL_IB_TC=0": (3,)},
        says="Library layer is where it breaks: The traffic class is not lossless, 1 of 4 hosts",
        causes={"env-traffic-class": (3,)},
        shares=("host",),
        fix="NCCL_IB_TC is the DSCP times 4",
        ladder="pass breaks-here pass-so-far pass-so-far",
    ),
    "a lower layer hides the higher one": Incident(
        faults={"packets-lost": (2,), "env-socket-forced": (2, 4)},
        says="Physical layer is where it breaks: RoCE packets are lost or reordered, 1 of 4 hosts",
        more=("2 other hosts break first at the library layer.",),
        # The peer of gpu-02 uses TCP as well; why, only the closed layer of gpu-02 would tell.
        causes={"roce-packets-lost": (2,), "env-tcp-forced": (4,), "nccl-socket-fallback": (1,)},
        shares=("host",),
        fix="grep -H . /sys/class/infiniband/mlx5_1/ports/1/hw_counters/out_of_sequence",
        ladder="breaks-here fails-too pass-so-far pass-so-far",
    ),
    "a GPU fails under the job": Incident(
        faults={"xid-gsp": (3,)},
        says="Runtime layer is where it breaks: GPU fault that needs a reset (Xid), 1 of 4 hosts",
        causes={"xid-needs-reset": (3,)},
        shares=("host",),
        fix="nvidia-smi -r",
        ladder="pass pass breaks-here pass-so-far",
    ),
    "the training program": Incident(
        faults={"no-overlap": ALL},
        status=WARN,
        says="All four layers pass on 4 hosts",
        causes={"overlap-off": ALL},
        shares=("everything",),
        fix="--overlap-grad-reduce",
        ladder="pass pass pass pass",
    ),
    "something in every layer": Incident(
        faults={"link-down": (1,), "env-misspelt": (2,), "xid-gsp": (3,), "tiny-buckets": (4,),
                "unreachable": (5,)},
        hosts=6,
        says="Physical layer is where it breaks: No cable, 1 of 6 hosts",
        more=(
            "1 other host breaks first at the runtime layer.",
            "1 other host breaks first at the application layer.",
            "1 of 6 hosts could not be judged.",
        ),
        causes={"link-no-cable": (1,), "Unreachable": (5,), "env-misspelt": (2,),
                "xid-needs-reset": (3,), "bucket-size-unit": (4,)},
        shares=("host",),
        fix="Push the plug home",
        folded={"library.log": (2,)},  # fewer channels, on the rail that is down over there
        ladder="breaks-here partly-judged fails-too fails-too",
    ),
    "NPUs beside GPUs": Incident(
        faults={"npu-link-down": (5,)},
        hosts=3,
        others=("ascend-910b",) * 3,
        says="Physical layer is where it breaks: NPU link is down, 1 of 6 hosts",
        causes={"npu-link-down": (5,)},
        shares=("host",),
        fix="hccn_tool -i 5 -optical -g",
        ladder="breaks-here pass-so-far pass-so-far pass-so-far",
    ),
    "a slow wire and why": Incident(
        faults={"pfc-off": (3,)},
        loads=("physical.collective-pairs",),
        says="Physical layer is where it breaks: PFC is off, 1 of 4 hosts",
        causes={"pfc-off": (3,)},
        shares=("host",),
        fix="lldptool -tni ens1np0",
        folded={"physical.collective-pairs": (3,)},
        ladder="breaks-here not-climbed not-climbed not-climbed",
    ),
    "a fault that the wire does not feel": Incident(
        faults={"nvlink-down": (2,)},
        loads=("physical.collective-node",),
        says="Physical layer is where it breaks: NVLinks are inactive, 1 of 4 hosts",
        causes={"nvlink-lost": (2,)},
        shares=("host",),
        fix="systemctl status nvidia-fabricmanager",
        against="physical.collective-node passes on 1 of them, though it would suffer from this",
        ladder="breaks-here not-climbed not-climbed not-climbed",
    ),
    "a straggler": Incident(
        faults={"straggler": (2,)},
        loads=("runtime.train-step",),
        says="Runtime layer is where it breaks: One rank is late, the others wait, 1 of 4 hosts",
        causes={"trace-straggler": (2,)},
        shares=("host",),
        fix="nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE",
        ladder="pass not-climbed breaks-here not-climbed",
    ),
}  # fmt: skip
QUICK = ("one leaf switch", "a damaged cable and what it brings", "something in every layer")
"""The others are left to CI: each is seconds of a core."""


def names(numbers: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"gpu-{number:02d}" for number in numbers)


def states(incident: Incident) -> list[HostState]:
    """The hosts with their faults. A leaf is the switch of all rails, by inventory and LLDP."""
    personas = [*[DEFAULT] * incident.hosts, *incident.others]
    found = cast(len(personas), personas)
    known = known_faults()
    for name, numbers in incident.faults.items():
        for number in numbers:
            found[number - 1] = known[name].change(found[number - 1])
    for variable, numbers in incident.variables.items():
        name, _, value = variable.partition("=")
        for number in numbers:
            host = found[number - 1]
            assert host.job is not None
            job = replace(host.job, variables=(*host.job.variables, (name, value)))
            found[number - 1] = replace(host, job=job)
    for switch, numbers in incident.leaf.items():
        for number in numbers:
            host = found[number - 1]
            heard = host.every_nic(lambda nic: replace(nic, wire=replace(nic.wire, switch=switch)))  # noqa: B023
            declared = (*host.declared, ("commcheck_leaf", switch))
            found[number - 1] = replace(heard, declared=declared)
    return found


def options(incident: Incident, folder: Path) -> list[str]:
    if incident.waived is None:
        return []
    check, number = incident.waived
    waiver = {"check": check, "hosts": f"gpu-{number:02d}", "until": "2999-12-31",
              "reason": "the spare part is ordered"}  # fmt: skip
    path = folder / "waivers.yaml"
    path.write_text(yaml.safe_dump({"waivers": [waiver]}))
    return ["--waivers", str(path)]


def over_ssh(incident: Incident, folder: Path) -> None:
    """Climb with what loads, on hosts that may be loaded."""
    book = folder / "loads.yaml"
    plays: list[dict[str, object]] = [{"layer": "physical", "checks": ["physical.*"]}]
    for check in incident.loads:
        plays.append({"layer": check.partition(".")[0], "checks": [check], "suspects": "include"})
    book.write_text(yaml.safe_dump({"name": "loads", "allow": ["load"], "plays": plays}))
    given = [str(book), "--out", str(folder), "--allow", "load", "--format", "hosts"]
    chosen = dict(main.commands["demo"].make_context("demo", given).params)
    for name in ("hosts", "faults", "personas"):
        del chosen[name]
    command.climb(states(incident), (), sources={}, **chosen)


def diagnosed(incident: Incident, folder: Path) -> Diagnosis:
    if incident.loads:
        over_ssh(incident, folder)
    else:
        climb(states(incident), folder, *options(incident, folder))
    (run,) = (each for each in folder.glob("2*") if each.is_dir())
    return diagnose(RunFolder.open(str(run), folder).record())


def told(group: Group) -> tuple[str, tuple[str, ...]]:
    return group.slug, group.hosts


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in INCIDENTS],
)
def test_what_is_told_of_an_incident(name: str, tmp_path: Path) -> None:
    incident = INCIDENTS[name]
    found = diagnosed(incident, tmp_path)
    assert found.status is incident.status
    assert found.headline.startswith(incident.says)
    assert found.more == incident.more
    assert [told(group) for group in found.groups] == [
        (slug, names(numbers)) for slug, numbers in incident.causes.items()
    ]
    words = [rung.word.split(",")[0].replace(" ", "-") for rung in found.ladder]
    assert " ".join(words) == incident.ladder
    if not found.groups:
        return
    first = found.groups[0]
    assert tuple(share.kind for share in first.shares) == incident.shares
    assert (first.fixes[0].text if first.fixes else "").startswith(incident.fix)
    assert {each.check: each.hosts for each in first.follows} == {
        check: names(numbers) for check, numbers in incident.folded.items()
    }
    assert not any("nic-link-flaps" in words.en for words in first.speaks_against)
    assert any(incident.against in words.en for words in first.speaks_against) or (
        not incident.against and not first.speaks_against
    )
