"""Run folders that were cut at any byte, or that somebody made up."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commcheck.attempts import before
from commcheck.cli import entry
from commcheck.errors import RunFolderError
from tests.chaos.climbs import Ended, assert_never_wrong, assert_nothing_lost, climb
from tests.chaos.conftest import words_for
from tests.chaos.seeds import SEEDS
from tests.cheap import CheapFleet, Script

CHECKS = ("nic-mtu", "pfc-enabled", "nic-consistency")
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Two simulated hosts, one of them broken."""
    only = [word for check in CHECKS for word in ("-t", f"physical.{check}")]
    base = tmp_path_factory.mktemp("whole") / "reports"
    ended = climb(["demo", "--hosts", 2, "--fault", "pfc-off@gpu-02", *only, "-q"], base)
    assert ended.code == 1
    return ended


@pytest.fixture
def call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Call:
    """The command line in this process. Whatever it is given, it ends in order."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COMMCHECK_DEBUG", "1")
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            entry([str(word) for word in words])
        out, err = capsys.readouterr()
        assert ended.value.code in (0, 1, 2, 3), (words, err)
        assert "Traceback" not in err, (words, err)
        assert "\x1b" not in out + err
        return int(str(ended.value.code)), out, err

    return run


def copy_of(ended: Ended, base: Path) -> Path:
    shutil.rmtree(base, ignore_errors=True)
    shutil.copytree(ended.run, base / ended.run.name)
    return base / ended.run.name


def told_by(run: Path) -> Counter[tuple[str, str, str]]:
    found = json.loads((run / "results.json").read_bytes())["verdicts"]
    return Counter((each["subject"], each["check"], each["status"]) for each in found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_cut_at_any_byte_it_is_rendered_judged_and_refused_in_order(
    whole: Ended, tmp_path: Path, call: Call, seed: int
) -> None:
    chance, told = random.Random(seed), told_by(whole.run)
    for _ in range(4):
        run = copy_of(whole, tmp_path / "cut")
        names = ["events.ndjson", "inventory.json", *(f"frames/gpu-0{n}.ndjson" for n in (1, 2))]
        cut = run / chance.choice([names[0], *names])
        data = cut.read_bytes()
        cut.write_bytes(data[: chance.randrange(len(data))])
        out = ("-o", run.parent, "-q")
        code, _, err = call("report", run.name, *out[:2])
        if code != 2:
            assert told_by(run).keys() <= told.keys() | not_judged(told), cut.name
        code, _, err = call("judge", run.name, *out)
        if code != 2:
            judged = told_by((run.parent / "latest").resolve())
            # What was recorded is judged as then, and what was lost is no pass and no fail.
            for (subject, check, status), _count in (judged - told).items():
                assert status in ("error", "skip"), (cut.name, subject, check, status, err)
        call("merge", run.name, *out)


def not_judged(told: Counter[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    return {
        (subject, check, status)
        for each, check, _ in told
        for subject in (each, each.partition("/")[0])
        for status in ("error", "skip")
    }


VALUES: tuple[Any, ...] = (
    *(None, True, -1, 10**30, 1e308, float("nan"), float("inf"), "", [], {}, [[]], {"a": None}),
    *("x\x1b[31m", "../../etc/passwd", "\ud800", "<script>", "9" * 5000, "physical.nic-mtu"),
)


def mutated(value: Any, chance: random.Random) -> Any:
    """The same with one value, somewhere in it, lost or put in place of another."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        if chance.random() < 0.1:
            return {each: value[each] for each in value if each != key}
        return {**value, key: mutated(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        return [*value[:at], mutated(value[at], chance), *value[at + 1 :]]
    return chance.choice(VALUES)


def damage(path: Path, chance: random.Random) -> None:
    lines = path.read_bytes().split(b"\n") if path.suffix == ".ndjson" else [path.read_bytes()]
    at = chance.randrange(max(1, len(lines) - 1))
    told = json.loads(lines[at])
    for _ in range(chance.randrange(1, 4)):
        told = mutated(told, chance)
    lines[at] = json.dumps(told).encode()
    path.write_bytes(b"\n".join(lines))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_made_up_values_are_rendered_or_refused(
    whole: Ended, tmp_path: Path, call: Call, seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(12):
        run = copy_of(whole, tmp_path / "made-up")
        places = [
            *(run / "events.ndjson", run / "inventory.json", run / "results.json"),
            *sorted((run / "frames").iterdir()),
        ]
        chosen = chance.choice(places)
        damage(chosen, chance)
        out = ("-o", run.parent)
        if chosen.name == "results.json":
            call("diff", *chance.sample([chosen, whole.run], 2), *out)
        else:
            command = chance.choice(["report", "judge", "merge"])
            call(command, run.name, *out, *(() if command == "report" else ("-q",)))
        assert {path.name for path in run.parent.parent.iterdir()} <= {"made-up", "whole"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_that_goes_on_from_made_up_values_judges_what_hosts_say(
    script: Script, tmp_path: Path, call: Call, seed: int
) -> None:
    """Killed at any event, one value of its folder made up, and then resumed or asked again."""
    chance = random.Random(seed)
    with CheapFleet(3, script) as fleet:
        words = words_for(fleet)
        whole = climb(words, tmp_path / "whole")
        healthy = {each[:3]: each[3] for each in whole.verdicts()}
        lines = (whole.run / "events.ndjson").read_bytes().splitlines(keepends=True)
        for _ in range(12):
            run = copy_of(whole, tmp_path / "made-up")
            (run.parent / "latest").symlink_to(run.name)
            events = run / "events.ndjson"
            events.write_bytes(b"".join(lines[: chance.randrange(2, len(lines))]))
            frames = sorted((run / "frames").iterdir())
            damage(chance.choice([events, events, run / "inventory.json", *frames]), chance)
            how = chance.choice(["--resume", "--resume", "--again"])
            code, _, _ = call(*words, how, run.name, "-o", run.parent)
            if code == 2:
                continue
            ended = Ended(code, "", "", run.parent, 0.0)
            assert code in (0, 3)
            assert_nothing_lost(ended, whole.results["run"]["hosts"])
            assert_never_wrong(ended, healthy)
        assert {path.name for path in tmp_path.iterdir()} <= {"whole", "whole-tmp", "made-up"}


DEEP = "[" * 20_000


FRAME = (
    '{"key": "x", "stdout": "", "stderr": "", "rc": %s, "started_s": 1, "ended_s": 2, '
    '"truncated": false, "state": "done"}\n'
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("inventory.json", "[]"),
        ("inventory.json", DEEP),
        ("inventory.json", '{"selected": 5}'),
        ("events.ndjson", DEEP + "\n"),
        ("frames/gpu-01.ndjson", DEEP + "\n"),
        ("frames/gpu-01.ndjson", '{"key": 5}\n'),
        ("frames/gpu-01.ndjson", FRAME % "1e999"),
        ("results.json", DEEP),
        ("results.json", '{"schema": "commcheck.results/1"}'),
    ],
)
def test_foreign_files_are_refused_by_name(
    whole: Ended, tmp_path: Path, call: Call, name: str, text: str
) -> None:
    run = copy_of(whole, tmp_path / "foreign")
    (run / name).write_text(text)
    out = ("-o", run.parent)
    code, _, err = call("diff", run / "results.json", whole.run, *out)
    assert (code == 2) is (name == "results.json"), err
    for words in (("report", run.name), ("merge", run.name), ("judge", run.name, "-q")):
        call(*words, *out)


def test_a_year_that_no_calendar_of_ours_has_is_refused(
    whole: Ended, tmp_path: Path, call: Call
) -> None:
    run = copy_of(whole, tmp_path / "foreign")
    events = run / "events.ndjson"
    first, _, rest = events.read_text().partition("\n")
    made_up = {**json.loads(first), "started": "0001-01-01T00:00:00+23:59"}
    events.write_text(f"{json.dumps(made_up)}\n{rest}")
    code, _, err = call("report", run.name, "-o", run.parent)
    assert code == 2
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("where", "value", "says"),
    [
        ("run", {"run_id": 5}, "run.run_id is 5, want str"),
        ("plan", {"hosts": [["gpu-01"]]}, "run.hosts"),
        ("host", {"code": None}, "is None, want str"),
    ],
)
def test_what_a_run_goes_on_from_has_the_right_types_before_anybody_is_asked(
    whole: Ended, tmp_path: Path, where: str, value: dict[str, Any], says: str
) -> None:
    run = copy_of(whole, tmp_path / "foreign")
    events = run / "events.ndjson"
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    made_up = next(each for each in lines if each["event"] == where)
    made_up.update(value)
    events.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    for resume, again in ((run.name, ""), ("", run.name)):
        with pytest.raises(RunFolderError, match="this is no whole run") as caught:
            before(resume, again, run.parent, hold=False)
        assert says in str(caught.value)


def test_a_result_of_no_check_on_no_host_is_refused_where_a_run_asks_again(
    whole: Ended, tmp_path: Path, call: Call
) -> None:
    run = copy_of(whole, tmp_path / "foreign")
    events = run / "events.ndjson"
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    next(each for each in lines if each["event"] == "result")["host"] = ["gpu-01"]
    events.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    code, _, err = call("run", "-i", "gpu-01,", "--again", run.name, "-o", run.parent)
    assert code == 2
    assert re.search(r"events\.ndjson: line \d+ is no result: Expected `str`, got `array`", err)


def test_damaged_answers_are_told_as_such_and_make_no_bug(
    whole: Ended, tmp_path: Path, call: Call
) -> None:
    run = copy_of(whole, tmp_path / "foreign")
    with (run / "frames" / "gpu-01.ndjson").open("a") as file:
        file.write(FRAME % '"one"')
    code, _, _ = call("judge", run.name, "-q", "-o", run.parent)
    assert code == 1  # of the other host
    told = json.loads((run.parent / "latest" / "results.json").read_bytes())
    assert told["run"]["not_reached"] == {"gpu-01": "not-recorded"}
    assert "what the run holds of gpu-01 is damaged" in str(told["verdicts"])
