"""Files as people have them, and what leaves: results, notes, screen, JSON."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from commcheck.errors import UsageError
from commcheck.model import Host, Status
from commcheck.nccl import offline
from commcheck.nccl.facts import Job
from commcheck.nccl.offline import analyse_logs, read_logs
from tests.nccl.made import job, ranks

LOG = job()


def per_process(folder: Path) -> None:
    """``nccl.%h.%p`` of every process."""
    for line in LOG.splitlines(keepends=True):
        host, pid, *_ = line.split(":")
        with (folder / f"nccl.{host}.{pid}").open("a") as file:
            file.write(line)


def edges(found: Job) -> int:
    return sum(sum(comm.via.values()) for comm in found.comms.values())


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("job.log", lambda data: data),
        ("job.log.gz", gzip.compress),
        ("job.log.bz2", bz2.compress),
        ("job.xz", lzma.compress),
        ("packed-without-a-suffix", gzip.compress),
    ],
)
def test_packed(tmp_path: Path, name: str, packed: object) -> None:
    assert callable(packed)
    (tmp_path / name).write_bytes(packed(LOG.encode()))
    assert edges(read_logs([str(tmp_path / name)])) == 12


def test_folders_globs_and_names_twice(tmp_path: Path) -> None:
    per_process(tmp_path)
    folder, pattern = str(tmp_path), str(tmp_path / "nccl.n*.1*")
    for paths in ([folder], [pattern], [folder, pattern, str(tmp_path / "nccl.n1.100")]):
        found = read_logs(paths)
        assert len(found.files) == 4
        assert edges(found) == 12


def test_the_order_of_names_changes_nothing(tmp_path: Path) -> None:
    per_process(tmp_path)
    names = [str(path) for path in tmp_path.iterdir()]
    one, other = analyse_logs(sorted(names)), analyse_logs(sorted(names, reverse=True))
    assert one.results == other.results
    assert one.facts == other.facts


def test_a_later_attempt_is_the_one_with_the_higher_pid(tmp_path: Path) -> None:
    """Of names in the order of their letters 10050 came before 9900."""
    failed = ranks(pid=9900)
    texts = dict.fromkeys((*failed, *ranks(pid=10050)), "")
    old = job(failed, complete=False, comm="0xaaa") + failed[0].warn(
        "Cuda failure 2 'out of memory'"
    )
    for line in (old + job(ranks(pid=10050))).splitlines(keepends=True):
        for rank in texts:
            if line.startswith(f"{rank.host}:{rank.pid}:"):
                texts[rank] += line
    for rank, text in texts.items():
        (tmp_path / f"nccl.{rank.host}.{rank.pid}").write_text(text)
    analysis = analyse_logs([str(tmp_path)])
    assert [f.verdict.status for f in analysis.results[0].findings] == [Status.PASS]
    assert "not judged: 4 processes of earlier attempts" in analysis.notes


def test_counts_and_their_nouns(tmp_path: Path) -> None:
    one = ranks(("n1",), 1)
    path = tmp_path / "job.log"
    path.write_text(job(one))
    screen = "\n".join(analyse_logs([str(path)]).screen)
    assert "1 of 1 rank seen on n1, network IB, 1 communicator\n" in screen
    assert " lines of 1 file read, " in screen
    path.write_text(one[0].info("cudaDriverVersion 12090"))
    assert "1 line of 1 file read, 1 of NCCL" in analyse_logs([str(path)]).screen


def test_standard_input() -> None:
    found = read_logs(["-"], stdin=io.BytesIO(LOG.encode()))
    assert found.files == ["-"]
    assert edges(found) == 12


def test_a_cut_archive_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    data = gzip.compress(LOG.encode() + b"x\n" * 100)
    (tmp_path / "job.gz").write_bytes(data[:-30])
    analysis = analyse_logs([str(tmp_path / "job.gz")])
    assert any("ended before" in note for note in analysis.notes)


def test_a_damaged_archive_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    data = bytearray(gzip.compress("".join(f"{LOG}{n}\n" for n in range(300)).encode()))
    data[-300:-200] = bytes(each ^ 0x5A for each in data[-300:-200])
    (tmp_path / "job.gz").write_bytes(data)
    analysis = analyse_logs([str(tmp_path / "job.gz")])
    assert any("ended before" in note for note in analysis.notes)


@pytest.mark.parametrize("name", ["pipe", "itself", "none"])
def test_what_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "itself").symlink_to("itself")
    with pytest.raises(UsageError):
        analyse_logs([str(tmp_path / name)])


@pytest.mark.parametrize("size", [1, 1 << 40])
def test_a_second_process_reads_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(offline, "APART_BYTES", size)
    path = tmp_path / "job.log"
    path.write_text(("z" * 99 + "\n") * 12_000 + LOG + "[rank0]: Last error:\n[rank0]: x\n")
    one, two = read_logs([str(path)]), read_logs([str(path)], processes=2)
    assert one.stats == two.stats
    assert edges(one) == edges(two) == 12


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_second_process_tells_the_same_of_a_damaged_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(offline, "APART_BYTES", 1)
    path = tmp_path / "packed"
    data = bytearray(pack(LOG.encode() + b"".join(b"%d\n" % n for n in range(9999))))
    data[len(data) // 2 :] = b"\xff" * 1000
    path.write_bytes(data)
    one, two = read_logs([str(path)]), read_logs([str(path)], processes=2)
    assert one.unreadable == two.unreadable
    assert one.stats == two.stats
    assert set(one.unreadable) == {0}


def test_wrong_paths_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.zst").write_bytes(b"")
    paths = ["/no/such", str(tmp_path / "empty"), str(tmp_path / "a.zst")]
    with pytest.raises(UsageError) as caught:
        analyse_logs(paths)
    assert len(caught.value.problems) == 3


def test_a_wrong_inventory_variable_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(LOG)
    with pytest.raises(UsageError, match="n1: commcheck_nics"):
        analyse_logs([str(tmp_path / "a")], {"n1": Host("n1", {"commcheck_nics": 7})})


def test_a_growing_log_is_not_stuck(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text("".join(line for line in LOG.splitlines(True) if "COMPLETE" not in line))
    changed = path.stat().st_mtime
    fresh = analyse_logs([str(path)], now_s=changed + 5)
    stale = analyse_logs([str(path)], now_s=changed + 500)
    assert fresh.results[0].status is Status.SKIP
    assert stale.results[0].status is Status.FAIL


def test_pods_of_one_machine_are_one_host(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(job(ranks(("pod-a", "pod-b"), 2), nodes=2))
    node = Host("node-1", {"commcheck_log_names": ["pod-a", "pod-b"], "ansible_host": "192.0.2.1"})
    alone = analyse_logs([str(path)])
    mapped = analyse_logs([str(path)], {"node-1": node})
    assert alone.results[0].status is Status.PASS
    rules = {finding.verdict.rule for finding in mapped.results[0].findings}
    assert {"LOG-018", "LOG-046"} <= rules


@pytest.mark.parametrize(
    "ways",
    [
        ({"ansible_port": 2201}, {"ansible_port": "2202"}),
        (
            {"ansible_ssh_common_args": "-o ProxyJump=site-a"},
            {"ansible_ssh_common_args": "-o ProxyJump=site-b"},
        ),
        (
            {"ansible_port": 2201, "ansible_password": "x"},
            {"ansible_port": 2202, "ansible_password": "x"},
        ),
    ],
)
def test_hosts_behind_one_address_are_not_taken_for_one(
    ways: tuple[dict[str, object], ...], tmp_path: Path
) -> None:
    """Port-forwarded machines are healthy over the network; containers of one machine are not."""
    path = tmp_path / "job.log"
    path.write_text(job(ranks(("n1", "n2"), 2)))
    hosts = {
        name: Host(name, {"ansible_host": "gate.example", **way})
        for name, way in zip(("n1", "n2"), ways, strict=True)
    }
    analysis = analyse_logs([str(path)], hosts)
    (finding,) = analysis.results[0].findings
    assert (finding.verdict.status, finding.verdict.rule) == (Status.PASS, "LOG-055")
    assert "4 ranks on 2 hosts" in finding.verdict.reason
    (told,) = (note for note in analysis.notes if "LOG-018" in note and "not judged" in note)
    assert "n1 and n2 answer at one address, gate.example" in told
    both = Host("n1", {"ansible_host": "gate.example", "commcheck_log_names": ["n2"]})
    named = analyse_logs([str(path)], {"n1": both})
    assert {f.verdict.rule for f in named.results[0].findings} >= {"LOG-018", "LOG-046"}


def test_two_names_of_one_machine_are_one_host(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(job(ranks(("n1", "n2"), 2)))
    hosts = {
        "n1": Host("n1", {"ansible_host": "192.0.2.1"}),
        "n2": Host("n2", {"ansible_ssh_host": "192.0.2.1", "ansible_port": 22}),
    }
    rules = {each.verdict.rule for each in analyse_logs([str(path)], hosts).results[0].findings}
    assert {"LOG-018", "LOG-046"} <= rules


def test_what_leaves(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(LOG + ranks()[0].warn("Cuda failure 2 'out of memory'"))
    analysis = analyse_logs([str(path)])
    (result,) = analysis.results
    assert (result.host, result.check) == ("@job", "library.log")
    (finding,) = result.findings
    last = len(path.read_text().splitlines())
    assert finding.evidence[0].key == f"{path}:{last}"
    assert "out of memory" in finding.evidence[0].head
    assert any(line.startswith("First error: n1 pid 100") for line in analysis.screen)
    assert any(note.startswith("rules judged: LOG-[") for note in analysis.notes)
    facts = json.loads(json.dumps(analysis.facts))
    assert facts["rules"]["LOG-041"]["state"] == "wrong"
    assert facts["communicators"][0]["channel_lines"]["P2P/CUMEM"] == 4
    assert facts["env"]["NCCL_IB_TIMEOUT"] == {"22": 4}


def test_figures_are_small_plain_data(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(LOG)
    (finding,) = analyse_logs([str(path)]).results[0].findings
    (figure,) = finding.verdict.figures
    assert figure.form == "ring"
    assert figure.data["order"] == [
        {"rank": rank, "host": f"n{1 + rank // 2}"} for rank in range(4)
    ]
    assert (figure.data["crossings"], figure.data["minimum"]) == (2, 2)
    assert figure.data["missing"] == []
