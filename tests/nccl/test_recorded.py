"""Every recorded log: the facts it must yield, and what is wrong with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from commcheck.model import Host, Status, Verdict
from commcheck.nccl.case import Case
from commcheck.nccl.facts import Comm, Job
from commcheck.nccl.judge import judge
from commcheck.nccl.offline import read_logs
from commcheck.nccl.site import site_of
from commcheck.nccl.topology import rings

RECORDED = Path(__file__).parents[1] / "recorded" / "nccl-logs"
MORE = os.environ.get("COMMCHECK_SAMPLES", "")


def read(*names: str) -> Job:
    return read_logs([str(RECORDED / name) for name in names])


def verdicts(job: Job, **variables: object) -> tuple[Verdict, ...]:
    """With an inventory in which all hosts have RDMA NICs, GPU Direct and NVLink."""
    links = {nic.link for proc in job.procs.values() for nic in proc.nics or ()}
    platform = "gpu-ib" if "IB" in links else "gpu-roce"
    given = {"platform": platform, "nvlink_links": 18, **variables}
    hosts = {
        host: Host(host, {f"commcheck_{name}": value for name, value in given.items()})
        for host in job.hosts
    }
    return judge(Case(job, site_of(hosts))).verdicts


def world(job: Job) -> Comm:
    comm = Case(job).world
    assert comm is not None
    return comm


HEALTHY = [
    ("01-healthy-2n16r-roce-2.21.5.log",),
    ("02-healthy-2n16r-ib-lazy-2.28.9.log",),
    ("13-k8s-pod0-cri.log", "13-k8s-pod1-docker.jsonl"),
    ("14-dirty-ansi-crlf-glued-1n4r.log",),
    ("16-healthy-2n8r-ib-2.7.8.log",),
    ("17-many-comms-1n4r-2.26.6.log",),
    ("18-debug-files",),
]


@pytest.mark.parametrize("names", HEALTHY, ids=lambda names: names[0][:12])
@pytest.mark.parametrize("with_inventory", [True, False])
def test_healthy(names: tuple[str, ...], with_inventory: bool) -> None:
    job = read(*names)
    (verdict,) = verdicts(job) if with_inventory else judge(Case(job)).verdicts
    assert (verdict.status, verdict.rule) == (Status.PASS, "LOG-055")
    assert verdict.measured["rules_judged"]
    assert isinstance(verdict.measured["rules_not_judged"], dict)


BROKEN = {
    "03-socket-fallback-2n4r-2.27.7.log": {
        ("LOG-001", ("trainer-0", "trainer-1")),
        ("LOG-002", ("trainer-0", "trainer-1")),
    },
    "04-shm-p2p-disabled-1n4r-2.20.5.log": {
        ("LOG-018", ("gpu-c07",)),
        ("LOG-025", ("gpu-c07",)),
    },
    "05-gdr-off-by-distance-2n8r-2.18.6.log": {
        ("LOG-026", ("gpu-d02",)),
        ("LOG-027", ("gpu-d02",)),
    },
    "06-zigzag-ring-2n8r-2.21.5.log": {("LOG-023", ("gpu-e01", "gpu-e02"))},
    "07-missing-rank13-2n16r-2.19.4.log": {("LOG-013", ("gpu-f02",))},
    "08-retry-exceeded-2n4r-2.28.9.log": {("LOG-032/033", ("gpu-g01",))},
    "09-gid-modify-qp-2n4r-2.24.3.log": {("LOG-036", ("gpu-h01",)), ("LOG-036", ("gpu-h02",))},
    "10-version-mismatch-2n4r-2.23-2.21.log": {("LOG-016", ("img-old-0",))},
    "11-torchrun-watchdog-2n4r-2.21.5.log": {("LOG-048", ("gpu-k02",))},
    "15-hccl-ei0006": {("HLOG-003", ("192.0.2.32",))},
    "15b-hccl-rootinfo-missing-ranks.log": {("HLOG-002", ())},
    "22-mixed-ib-socket-2n4r-2.27.7.log": {("LOG-002", ("gpu-r02",)), ("LOG-006", ("gpu-r02",))},
    "diag/init-diag-failing-2.32.3.log": {
        ("DIAG-003", ("gpu-t02",)),
        ("DIAG-004", ()),
        ("DIAG-005", ("gpu-t02",)),
        ("DIAG-006", ("gpu-t01", "gpu-t02")),
    },
    "diag/ras-diagnostics-ondemand-2.32.3.txt": {
        ("DIAG-009", ()),
        ("DIAG-010", ()),
    },
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken(name: str) -> None:
    found = [
        each for each in verdicts(read(name), line_rate_gbits=400) if each.status is Status.FAIL
    ]
    assert {(each.rule, each.hosts) for each in found} == BROKEN[name]
    for each in found:
        assert each.measured["evidence"], each
        assert "{" not in "".join(remedy.command for remedy in each.remedies)


UNKNOWN = {
    "12-ray-driver-dedup-2n4r-2.21.5.log": ("LOG-051", "RAY_DEDUP_LOGS=0"),
    "12b-ray-worker-rank2.out": ("LOG-055", "1 of 4 ranks"),
    "20-ring-line-1024r-2.20.5.log": ("LOG-055", "1 of 1024 ranks"),
    "diag/init-diag-skipped-cut-2.32.3.log": ("DIAG-001", "has no end"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown(name: str) -> None:
    (verdict,) = verdicts(read(name))
    rule, why = UNKNOWN[name]
    assert (verdict.status, verdict.rule) == (Status.SKIP, rule)
    assert why in verdict.reason


def test_every_recording_is_named() -> None:
    named = {name.split("/")[0] for name in {*BROKEN, *UNKNOWN}}
    named |= {name for names in HEALTHY for name in names}
    others = {"SOURCES.md", "21-uneven-rails-2n8r-2.21.5.log"}
    assert {path.name for path in RECORDED.iterdir()} == named | others


def test_healthy_roce() -> None:
    job = read("01-healthy-2n16r-roce-2.21.5.log")
    comm = world(job)
    assert (job.stats.lines, job.stats.nccl_lines, job.stats.fragments) == (977, 976, 0)
    assert job.banners == {"2.21.5+cuda12.4": 1}
    assert {proc.driver for proc in job.procs.values()} == {12040}
    assert comm.key == ("id", "0x5f3a9c0d7b21e464")
    assert len(comm.members) == 16
    assert sum(m.start and m.complete for m in comm.members.values()) == 16
    assert {m.proc.host for r, m in comm.members.items() if r < 8} == {"gpu-a01"}
    assert (comm.edges("P2P"), comm.edges("send"), comm.edges("receive")) == (448, 64, 64)
    assert all("GDRDMA" in via for via in comm.via if via.startswith("NET"))
    assert len(comm.nic_use) == 16
    assert set(comm.nic_use.values()) == {4}
    assert [r.crossings for r in rings(Case(job), comm)] == [2] * 16
    assert {len(p.nics or ()) for p in job.procs.values()} == {8}


def test_graph_lines_agree_with_the_listings() -> None:
    job = read("02-healthy-2n16r-ib-lazy-2.28.9.log")
    comm = world(job)
    assert len(comm.graph_next) == 256
    for channel, order in comm.listings.items():
        for here, there in zip(order, [*order[1:], order[0]], strict=True):
            assert comm.graph_next[channel << 24 | here] == there
    assert sum(job.banners.values()) == 16
    assert {p.oob and p.oob[0] for p in job.procs.values()} == {"bond0"}


def test_old_gdr_lines() -> None:
    job = read("05-gdr-off-by-distance-2n8r-2.18.6.log")
    reasons = [v.reason for v in verdicts(job)]
    assert any("distance 7 (SYS), limit 4" in reason for reason in reasons)


def test_the_missing_rank_is_placed_by_its_neighbours() -> None:
    (verdict,) = verdicts(read("07-missing-rank13-2n16r-2.19.4.log"))
    assert "rank 13 (gpu-f02, local rank 5)" in verdict.reason
    assert verdict.figures[0].data["missing"] == [13]


def test_one_finding_for_status_12_with_its_flushes() -> None:
    (verdict,) = verdicts(read("08-retry-exceeded-2n4r-2.28.9.log"))
    assert "rank 0 (gpu-g01 pid 4100) hca mlx5_0" in verdict.reason
    assert "192.0.2.12" in verdict.reason
    assert verdict.measured["flushed_after"] == 3
    assert "opcode" not in verdict.reason


def test_gid_errors_keep_both_ends() -> None:
    first, second = verdicts(read("09-gid-modify-qp-2n4r-2.24.3.log"))
    assert first.measured["events"] == 2
    assert str(first.measured["remote_gid"]).startswith("fe80::")
    assert (second.measured["error"], second.measured["local_gid"]) == ("22", "::")


def test_ray_counts_what_stands_for_others() -> None:
    job = read("12-ray-driver-dedup-2n4r-2.21.5.log")
    comm = world(job)
    assert sorted(r for r, m in comm.members.items() if m.start) == [1, 3]
    assert sorted(r for r, m in comm.members.items() if m.complete) == [2, 3]
    assert job.stats.repeated > 0
    assert Case(job).network == "IB"


def test_two_pods_with_equal_pids() -> None:
    job = read("13-k8s-pod0-cri.log", "13-k8s-pod1-docker.jsonl")
    comm = world(job)
    assert {(p.host, p.pid) for p in job.procs.values()} == {
        (f"bert-worker-{pod}", pid) for pod in (0, 1) for pid in (1, 88)
    }
    assert (comm.edges("P2P"), comm.edges("send"), comm.edges("receive")) == (8, 8, 8)
    assert sorted(comm.trees) == [0, 1, 2, 3]


def test_dirty_lines() -> None:
    job = read("14-dirty-ansi-crlf-glued-1n4r.log")
    assert world(job).edges("P2P") == 7
    assert job.stats.fragments == 1
    assert job.stats.cut_files == [0]


def test_splits_have_their_own_ranks() -> None:
    job = read("17-many-comms-1n4r-2.26.6.log")
    assert sorted(comm.nranks for comm in job.comms.values()) == [2, 2, 2, 2, 4]
    assert world(job).edges("P2P") == 8
    assert sum(c.edges("P2P") for c in job.comms.values() if c.nranks == 2) == 16
    assert all(m.gone for m in world(job).members.values())


def test_a_damaged_listing_is_no_ring() -> None:
    job = read("20-ring-line-1024r-2.20.5.log")
    judgement = judge(Case(job))
    assert judgement.rulings["LOG-023"].state == "unknown"
    assert rings(Case(job), world(job)) == ()
    assert world(job).nodes == 128


def test_unused_rails_fail_where_the_inventory_names_them() -> None:
    job = read("21-uneven-rails-2n8r-2.21.5.log")
    assert {v.status for v in verdicts(job)} == {Status.WARN}
    named = verdicts(job, nics=["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"])
    assert {(v.status, v.rule) for v in named} == {(Status.FAIL, "LOG-024")}
    assert {v.hosts for v in named} == {("gpu-q01",), ("gpu-q02",)}


def test_hccl_facts() -> None:
    hccl = read("15-hccl-ei0006").hccl
    assert (hccl.nranks, hccl.servers) == (4, 2)
    ranks = [(link.source.rank, link.target.rank) for link in hccl.links]
    assert [pair for pair in ranks if pair != (None, None)] == [(0, 2), (1, 3), (2, 3)]
    assert {link.target.address for link in hccl.links} == {"", "198.51.100.42", "198.51.100.43"}
    silent = hccl.of_rank(3)
    assert silent is not None
    assert (silent.errors, silent.server, silent.device) == (0, "192.0.2.32", 1)
    assert silent.env["HCCL_RDMA_TC"] == "106"
    root = next(v for v in verdicts(read("15-hccl-ei0006")) if v.rule == "HLOG-003")
    assert "rank 3 (192.0.2.32 device 1)" in root.reason
    ping = next(each.command for each in root.remedies if "ping" in each.command)
    assert ping == "ssh 192.0.2.31 hccn_tool -i 1 -ping -g address 198.51.100.43"


def test_no_rdma_link_between_servers_is_told() -> None:
    rule = judge(Case(read("15-hccl-ei0006"))).rulings["HLOG-004"]
    assert rule.state == "right"  # the one without RDMA is inside one server


def test_diagnostics() -> None:
    failing = judge(Case(read("diag/init-diag-failing-2.32.3.log")))
    assert failing.rulings["DIAG-006"].found[0].hosts == ("gpu-t02", "gpu-t01")
    skipped = judge(Case(read("diag/init-diag-skipped-cut-2.32.3.log")))
    assert skipped.rulings["DIAG-002"].state == "right"
    assert skipped.rulings["DIAG-007"].state == "other"
    assert skipped.rulings["DIAG-014"].state == "unknown"


@pytest.mark.parametrize("name", ["diag/init-diag-ok-2.31.2.log"])
def test_verified_pairs_pass(name: str) -> None:
    (verdict,) = verdicts(read(name))
    assert (verdict.status, verdict.rule) == (Status.PASS, "DIAG-002")


@pytest.mark.skipif(not MORE, reason="COMMCHECK_SAMPLES names no folder with samples")
def test_any_sample_is_read() -> None:
    for path in sorted(Path(MORE).rglob("*")):
        if path.is_file() and path.suffix != ".zst" and path.stat().st_size < 500_000:
            judge(Case(read_logs([str(path)])))
