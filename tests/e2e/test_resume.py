"""Living with runs: killed and resumed, asked again, judged again, in shards."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commcheck.cli import entry
from tests.demo.test_demo import demo
from tests.e2e.conftest import Commcheck, Ran, answer, recorded
from tests.e2e.test_climb import start, until
from tests.sshd import SshdFleet

Fleets = Callable[..., SshdFleet]

ASKED = (
    "nic-link-up",
    "nic-mtu",
    "pfc-enabled",
    "roce-trust-dscp",
    "rdma-mtu",
    "nvlink-active",
    "nic-consistency",
)
ONLY = [word for name in ASKED for word in ("-t", f"physical.{name}")]


def reach(fleet: SshdFleet) -> list[object]:
    return ["-i", fleet.inventory, "--known-hosts", fleet.known_hosts, *ONLY]


def judged(ran: Ran) -> list[dict[str, Any]]:
    """Every verdict, whole; the values of ``measured`` and ``threshold`` too."""
    found: list[dict[str, Any]] = ran.document["verdicts"]
    return found


def events(run: Path) -> list[dict[str, Any]]:
    lines = (run / "events.ndjson").read_bytes().split(b"\n")[:-1]
    return [json.loads(line) for line in lines]


def ended(run: Path) -> set[str]:
    """The hosts whose end is in the folder."""
    return {each["host"] for each in events(run) if each["event"] == "host"}


def keys(run: Path) -> dict[str, Counter[str]]:
    """By file of frames: how often each command is there."""
    found = {}
    for path in (run / "frames").glob("*.ndjson"):
        lines = path.read_bytes().split(b"\n")[:-1]
        found[path.stem] = Counter(json.loads(line)["key"] for line in lines)
    return found


@pytest.fixture
def offline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Commcheck:
    """The command line in this process, for what asks no host: a third of the time."""
    cwd = tmp_path / "cwd"
    cwd.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(tmp_path))

    def run(*words: object, timeout_s: float = 60) -> Ran:
        del timeout_s
        monkeypatch.chdir(cwd)
        with pytest.raises(SystemExit) as ended:
            entry([str(word) for word in words])
        told = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, told.out, told.err, cwd)

    return run


# --- resume -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.sshd
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("hosts", "kills"), [(6, 2), pytest.param(40, 20, marks=pytest.mark.soak)])
def test_a_killed_run_goes_on_where_it_was(
    commcheck: Commcheck, fleet_of: Fleets, tmp_path: Path, hosts: int, kills: int
) -> None:
    fleet = fleet_of(hosts, servers=4)
    answer(fleet.servers[1], "mlnx_qos", recorded("mlnx_qos/pfc-off.txt"))
    fleet.servers[2].tool("ibv_devinfo", "exit 127")
    fleet.kill(fleet.servers[3])
    begun = time.monotonic()
    whole = commcheck("run", *reach(fleet), "-f", 8, "--format", "json")
    took_s = time.monotonic() - begun
    assert whole.code == 1, whole.err
    cwd, cut_short = tmp_path / "cwd", 0
    chance = random.Random(hosts)
    for number in range(kills):
        out = ["-o", f"killed-{number}"]
        child = start(["run", *reach(fleet), "-f", 8, *out, "-q"], cwd)
        runs = cwd / f"killed-{number}"
        until(lambda runs=runs: any(runs.glob("2*/events.ndjson")))  # type: ignore[misc]
        if number:  # the first is killed at its first word
            time.sleep(chance.uniform(0, 0.7 * took_s))
        child.kill()
        child.communicate()
        (run,) = (path for path in runs.iterdir() if not path.is_symlink())
        known, before = ended(run), fleet.count("Starting session: command")
        cut_short += len(known) < hosts
        again = commcheck("run", "--resume", "last", *reach(fleet), *out, "--format", "json")
        assert again.code == whole.code, again.err
        assert judged(again) == judged(whole)
        assert again.document["run"]["state"] == "complete"
        run = (runs / "latest").resolve()  # another one where it was killed before its first word
        # No session for a host that had ended, and no command twice whose answer was there.
        assert fleet.count("Starting session: command") - before <= hosts - len(known)
        twice = {
            (host, key)
            for host, counts in keys(run).items()
            for key, count in counts.items()
            if count > 1 and key != "subjects"
        }
        assert not twice
    assert cut_short, "no kill came while hosts were being asked"


@pytest.mark.slow
@pytest.mark.sshd
def test_a_line_cut_in_half_costs_no_more_than_itself(
    commcheck: Commcheck, fleet_of: Fleets
) -> None:
    fleet = fleet_of(2)
    whole = commcheck("run", *reach(fleet), "--format", "json")
    run = whole.folder
    lines = (run / "events.ndjson").read_bytes().split(b"\n")
    at = next(n for n, line in enumerate(lines) if b'"event":"host"' in line)
    frames = {path: path.read_bytes() for path in (run / "frames").iterdir()}
    # In the middle of the first host's end, and of the last answer of both hosts.
    (run / "events.ndjson").write_bytes(b"\n".join(lines[:at]) + b"\n" + lines[at][:20])
    for path, data in frames.items():
        path.write_bytes(data[:-20])
    again = commcheck("run", "--resume", "last", "--format", "json")  # reached as before
    assert judged(again) == judged(whole), again.err
    for path, data in frames.items():
        kept = data[: data.rfind(b"\n", 0, -20) + 1]
        assert path.read_bytes().startswith(kept)
        told = [json.loads(line)["key"] for line in path.read_bytes().splitlines()]
        assert Counter(told) == Counter(
            [json.loads(line)["key"] for line in data.splitlines()] + ["subjects"]
        )
    over = commcheck("run", "--resume", "last")
    assert over.code == again.code
    assert "nothing is left to ask" in over.err
    assert fleet.count("Starting session: command") == 4


@pytest.mark.sshd
def test_a_run_that_still_goes_on_and_another_run_are_refused(
    commcheck: Commcheck, fleet_of: Fleets, tmp_path: Path
) -> None:
    fleet = fleet_of(2)
    fleet.tool("mlnx_qos", "sleep 60")
    fleet.servers[0].tool("mlnx_qos", "sleep 60")
    child = start(["run", *reach(fleet), "-q"], tmp_path / "cwd")
    run = tmp_path / "cwd/reports/latest/events.ndjson"
    until(lambda: run.exists() and b'"plan"' in run.read_bytes())
    busy = commcheck("run", "--resume", "last", *reach(fleet))
    assert (busy.code, "still going on" in busy.err) == (2, True)
    child.kill()
    child.communicate()
    other = commcheck("run", "--resume", "last", *reach(fleet)[:4], "-t", "physical.nic-mtu")
    assert other.code == 2
    assert "asked something else" in other.err
    assert "checks only then: physical.nic-consistency, physical.nic-link-up" in other.err
    fleet.write_inventory({fleet.names[0]: {"commcheck_mtu": 9000}})
    changed = commcheck("run", "--resume", "last", *reach(fleet))
    assert changed.code == 2
    assert "inventory digest" in changed.err


@pytest.mark.slow
def test_a_run_that_had_not_begun_is_begun(commcheck: Commcheck) -> None:
    words = ["run", "-i", "localhost,", "-t", "physical.reachable", "-q"]
    first = commcheck(*words)
    run = first.folder
    (run / "events.ndjson").write_bytes(b'{"event":"run"')
    again = commcheck(*words, "--resume", run.name)
    assert again.code == first.code
    told = (again.folder / "events.ndjson").read_text()
    assert "killed before it began; this is a new run" in told
    assert again.folder != run
    (run.parent / "29991129T150405Z-7f3a").mkdir()
    assert commcheck(*words, "--resume", "last").code == first.code
    assert commcheck("run", "--resume", "last").code == 2
    assert commcheck("report", "last").code == 2


# --- shards -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.sshd
def test_three_shards_merged_are_the_run(
    commcheck: Commcheck, offline: Commcheck, fleet_of: Fleets
) -> None:
    fleet = fleet_of(7, servers=4)
    answer(fleet.servers[1], "mlnx_qos", recorded("mlnx_qos/pfc-off.txt"))
    fleet.kill(fleet.servers[3])
    # PFC off on two of six hosts is a minority among all, and a majority in some shard.
    whole = commcheck("run", *reach(fleet), "--format", "json")
    shards = []
    for number in (1, 2, 3):
        assert commcheck("run", *reach(fleet), "--shard", f"{number}/3", "-q").code in (0, 1, 3)
        shards.append((whole.cwd / "reports/latest").resolve().name)
    merged = offline("merge", *reversed(shards), "--format", "json")
    assert judged(merged) == judged(whole), merged.err
    assert merged.code == whole.code
    assert merged.document["run"]["hosts"] == fleet.names
    missing = offline("merge", *shards[1:])
    assert (missing.code, missing.err) == (
        2,
        "error: in none of the runs: gpu0-[01,04,07] [missing]\n",
    )
    doubled = offline("merge", *shards, shards[0])
    assert doubled.code == 2
    assert "gpu0-[01,04,07] [doubled]" in doubled.err
    fleet.write_inventory({fleet.names[0]: {"commcheck_mtu": 4200}})
    commcheck("run", *reach(fleet), "--shard", "1/3", "-q")
    unlike = offline("merge", "last", *shards[1:])
    assert unlike.code == 2
    assert "inventory digest" in unlike.err


# --- again, judge, diff, on the embedded fleet ----------------------------------------------------


@pytest.fixture(scope="module")
def mended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ran, Ran]:
    """Two faults, and the same fleet asked again when one of them was mended."""
    folder = tmp_path_factory.mktemp("again")
    words = ["--hosts", 3, *ONLY, "-q"]
    fault = ["--fault", "mtu-1500@gpu-03"]
    first = demo(folder, *words, *fault, "--fault", "pfc-off@gpu-02")
    second = demo(folder, *words, *fault, "--again", "last")
    return (
        folder,
        Ran(first.code, first.out, first.err, first.cwd),
        Ran(second.code, second.out, second.err, second.cwd),
    )


@pytest.mark.slow
def test_asking_again_says_exactly_what_was_mended(mended: tuple[Path, Ran, Ran]) -> None:
    _, first, second = mended
    assert (first.code, second.code) == (1, 1), second.err
    assert second.out.splitlines()[-1] == (
        "fixed 1 (physical.pfc-enabled on gpu-02), still 1 (physical.nic-mtu on gpu-03), new 0"
    )
    runs = (path for path in (first.cwd / "reports").iterdir() if not path.is_symlink())
    old, new = sorted(runs)[:2]
    # Whoever passed was not asked: its frames are those of then, to the microsecond.
    assert (new / "frames/gpu-01.ndjson").read_bytes() == (
        old / "frames/gpu-01.ndjson"
    ).read_bytes()
    assert (new / "frames/gpu-02.ndjson").read_bytes() != (
        old / "frames/gpu-02.ndjson"
    ).read_bytes()
    assert "1 host passed then" in second.out
    changes = json.loads((new / "results.json").read_text())["changes"]
    assert changes["baseline"] == old.name
    assert (changes["counts"]["fixed"], changes["counts"]["still-failing"]) == (1, 1)
    for report in ("report.html", "summary.md"):
        assert "still failing" in (new / report).read_text()


def test_later_commands_need_neither_hosts_nor_inventory(
    mended: tuple[Path, Ran, Ran], offline: Commcheck
) -> None:
    _, first, _ = mended
    out = first.cwd / "reports"
    old, new = sorted(path.name for path in out.iterdir() if not path.is_symlink())[:2]
    drain = offline("report", old, "-o", out, "--format", "hosts")
    assert (drain.code, drain.out, drain.err) == (1, "gpu-[02-03]\n", "")
    told = offline("diff", old, new, "-o", out)
    assert told.code == 0
    assert re.search(r"fixed +gpu-02", told.out)
    worse = offline("diff", new, old, "-o", out, "--format", "json")
    assert worse.code == 1
    assert worse.document["counts"]["newly-failing"] == 1
    results = offline("diff", out / old / "results.json", out / new / "results.json")
    assert (results.code, results.out) == (0, told.out)

    judge = ["judge", old, "-o", out, "-q", "--format", "json"]
    same = offline(*judge)
    recorded_then = json.loads((out / old / "results.json").read_text())["verdicts"]
    assert (same.code, same.document["verdicts"]) == (1, recorded_then)
    one = offline("judge", old, "-o", out, "-q", "-t", "physical.pfc-enabled",
                    "--format", "hosts")  # fmt: skip
    assert one.out == "gpu-02\n"
    unasked = offline(*judge, "-t", "physical.gpu-pcie")
    assert unasked.code == 3
    found = {v["reason"].partition(":")[0] for v in judged(unasked) if v["status"] == "error"}
    assert found == {"not recorded"}

    # Today's limits: what the inventory says now, and a waiver of today.
    (first.cwd / "inv.yaml").write_text(
        "all: {hosts: {'gpu-[01:03]': {}}, vars: {commcheck_mtu: 1500, commcheck_rdma_mtu: 1024}}\n"
    )
    waiver = first.cwd / "w.yaml"
    waiver.write_text(
        "waivers:\n  - {check: physical.pfc-enabled, hosts: gpu-02, until: 2999-01-01, "
        "reason: ticket 4711}\n"
    )
    today = offline(*judge, "-i", first.cwd / "inv.yaml", "--waivers", waiver,
                      "-t", "physical.nic-mtu", "-t", "physical.pfc-enabled")  # fmt: skip
    kinds = {(v["host"], v["status"], v["kind"]) for v in judged(today)}
    assert ("gpu-02", "skip", "waived") in kinds
    assert not [v for v in judged(today) if v["status"] == "fail"], today.err
    (first.cwd / "inv.yaml").write_text("all: {hosts: {gpu-01: {}}}\n")
    lacking = offline(*judge, "-i", first.cwd / "inv.yaml")
    assert lacking.code == 2
    assert "gpu-[02-03]" in lacking.err


def test_what_cannot_be_compared_is_refused_before_anybody_is_asked(
    mended: tuple[Path, Ran, Ran], tmp_path: Path, offline: Commcheck
) -> None:
    out = mended[1].cwd / "reports"
    for words in (
        ["run", "-i", "a,", "--baseline", "nowhere", "-o", out],
        ["run", "-i", "a,", "--baseline", tmp_path],
        ["run", "-i", "a,", "--resume", "x", "--again", "y"],
        ["run", "-i", "a,", "--again", "nowhere", "-o", out],
    ):
        ran = offline(*words)
        assert (ran.code, ran.out) == (2, ""), ran.out
        assert "Traceback" not in ran.err
    assert not (tmp_path / "cwd" / "reports").exists()
