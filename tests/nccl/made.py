"""NCCL logs made line by line, for what no recording holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commcheck.model import Host
from commcheck.nccl.case import Case
from commcheck.nccl.facts import Job
from commcheck.nccl.judge import judge
from commcheck.nccl.reader import Desk, FileReader
from commcheck.nccl.ruling import Judgement
from commcheck.nccl.scan import Scanner
from commcheck.nccl.site import site_of

COMM = "0x5f3a9c0d7b21e464"


def read(text: str | bytes, *, name: str = "job.log", chunk: int = 1 << 16) -> Job:
    """The facts of one text."""
    return read_all({name: text}, chunk=chunk)


def read_all(texts: Mapping[str, str | bytes], *, chunk: int = 1 << 16) -> Job:
    """The facts of several files."""
    desk = Desk()
    for name, text in texts.items():
        data = text if isinstance(text, bytes) else text.encode()
        reader = FileReader(desk, name)
        scanner = Scanner(reader)
        for start in range(0, len(data), chunk):
            scanner.feed(data[start : start + chunk])
        cut = scanner.close()
        desk.job.stats.lines += scanner.number
        reader.close(cut=cut)
    return desk.finish()


def judged(text: str | bytes | Job, **variables: object) -> Judgement:
    """All rules on a text; ``variables`` hold for every host of it."""
    job = text if isinstance(text, Job) else read(text)
    given = {f"commcheck_{name}": value for name, value in variables.items()}
    names = job.hosts | {diag.host for diag in job.diag}
    hosts = {host: Host(host, given) for host in names} if given else None
    return judge(Case(job, site_of(hosts)))


class Rank:
    """One process with one GPU."""

    def __init__(self, host: str, pid: int, dev: int) -> None:
        self.host, self.pid, self.dev = host, pid, dev

    def info(self, text: str) -> str:
        return f"{self.host}:{self.pid}:{self.pid + 60} [{self.dev}] NCCL INFO {text}\n"

    def warn(self, text: str, file: str = "transport/net_ib.cc:100", stamp: str = "") -> str:
        head = f"{stamp}{self.host}:{self.pid}:{self.pid + 60} [{self.dev}]"
        return f"\n{head} {file} NCCL WARN {text}\n"


def ranks(hosts: Sequence[str] = ("n1", "n2"), each: int = 2, pid: int = 100) -> list[Rank]:
    """Ranks host by host."""
    return [Rank(host, pid + dev, dev) for host in hosts for dev in range(each)]


def job(
    members: Sequence[Rank] | None = None,
    *,
    version: str = "2.27.7+cuda12.9",
    driver: int = 12090,
    network: str = "IB",
    nics: int = 2,
    link: str = "RoCE",
    gdr: bool = True,
    oob: str = "eth0:192.0.2.11",
    nodes: int | None = None,
    mnnvl: int = 0,
    skip: Sequence[int] = (),
    complete: bool = True,
    connect: bool = True,
    extra: str = "",
    comm: str = COMM,
) -> str:
    """A healthy job, 2.27 in style, with what a test wants to be different."""
    members = ranks() if members is None else members
    names = list(dict.fromkeys(rank.host for rank in members))
    total = len(members)
    lines = []
    for index, rank in enumerate(members):
        if index in skip:
            continue
        listed = " ".join(f"[{n}]mlx5_{n}:1/{link}" for n in range(nics))
        who = f"comm 0x7f00{index:04x} rank {index} nranks {total} cudaDev {rank.dev} nvmlDev "
        who += f"{rank.dev} busId {rank.dev + 1:x}8000 commId {comm}"
        lines.append(rank.info(f"Bootstrap: Using {oob}<0>"))
        lines.append(rank.info(f"cudaDriverVersion {driver}"))
        lines.append(rank.info(f"NCCL version {version}"))
        lines.append(rank.info("NCCL_IB_TIMEOUT set by environment to 22."))
        if network != "Socket" or nics:
            lines.append(rank.info(f"NET/IB : Using {listed} [RO]; OOB {oob}<0>"))
        lines.append(rank.info(f"Using network {network}"))
        lines.append(rank.info(f"ncclCommInitRank {who} - Init START"))
        lines.append(
            rank.info(
                f"comm 0x7f00{index:04x} rank {index} nRanks {total} nNodes "
                f"{nodes or len(names)} localRanks {total // len(names)} localRank {rank.dev} "
                f"MNNVL {mnnvl}"
            )
        )
        if index == 0:
            order = " ".join(map(str, range(total)))
            lines += [rank.info(f"Channel 0{c}/02 : {order}") for c in range(2)]
        if complete:
            lines.append(
                rank.info(
                    "2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, "
                    "2 p2p channels per peer"
                )
            )
            lines.append(rank.info(f"ncclCommInitRank {who} - Init COMPLETE"))
            lines.append(
                rank.info(
                    f"Init timings - ncclCommInitRank: rank {index} nranks {total} total 1.20 "
                    "(kernels 0.20, bootstrap 0.60, rest 0.40)"
                )
            )
        if complete and connect:
            lines += _edges(members, index, network=network, gdr=gdr)
            lines.append(rank.info("Connected all rings, use ring PXN 0 GDR " + str(int(gdr))))
    return "".join(lines) + extra


def _edges(members: Sequence[Rank], index: int, *, network: str, gdr: bool) -> list[str]:
    rank, total = members[index], len(members)
    after, before = (index + 1) % total, (index - 1) % total
    net = f"NET/{network}/{{}}" + ("/GDRDMA" if gdr and network != "Socket" else "")
    lines = []
    for channel in range(2):
        head = f"Channel 0{channel}/0 : "
        step = f"{index}[{rank.dev}] -> {after}[{members[after].dev}]"
        if members[after].host == rank.host:
            lines.append(rank.info(f"{head}{step} via P2P/CUMEM"))
        else:
            lines.append(rank.info(f"{head}{step} [send] via {net.format(channel)}"))
        if members[before].host != rank.host:
            back = f"{before}[{members[before].dev}] -> {index}[{rank.dev}]"
            lines.append(rank.info(f"{head}{back} [receive] via {net.format(channel)}"))
    return lines
