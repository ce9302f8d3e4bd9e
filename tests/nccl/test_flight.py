"""Dumps of PyTorch's flight recorder: read without executing anything, and where ranks parted."""

from __future__ import annotations

import datetime
import json
import os
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.errors import UsageError
from commcheck.model import Kind, Status, Verdict
from commcheck.nccl import flight, flight_rules
from commcheck.nccl.flight_groups import by_rank, some
from commcheck.nccl.flight_rules import (
    DIFFERENT,
    NEVER_CALLED,
    NOT_REACHED,
    SIZES,
    STUCK,
    judge,
)
from commcheck.nccl.offline_hang import analyse_hang
from tests.nccl.recorders import DONE, IN, dumps, entry

RECORDED = Path(__file__).parents[1] / "recorded" / "flight-recorder"


# (what each rank recorded, rule, status, cause)
TABLE = [
    ([[DONE, IN], [DONE], [DONE, IN]], "FR-002", NEVER_CALLED),
    ([[DONE, IN], [DONE, entry(2, state="started", profiling_name="nccl:broadcast")]], "FR-003",
     DIFFERENT),
    ([[DONE, IN], [DONE, entry(2, state="started", input_sizes=[[2048]])]], "FR-004", SIZES),
    ([[DONE, IN], [DONE, IN]], "FR-005", STUCK),
    ([[DONE, IN], [DONE, entry(2, state="scheduled")]], "FR-006", NOT_REACHED),
    ([[DONE, entry(2)], [DONE, entry(2)]], "FR-007", None),
]  # fmt: skip


@pytest.mark.parametrize(("ranks", "rule", "cause"), TABLE)
def test_where_ranks_parted(ranks: list[list[dict[str, Any]]], rule: str, cause: object) -> None:
    (verdict,) = judge(dumps(*ranks))
    assert (verdict.rule, verdict.cause) == (rule, cause)
    assert verdict.status is (Status.FAIL if cause else Status.PASS)


def test_every_cause_has_a_case() -> None:
    every = {NEVER_CALLED, DIFFERENT, SIZES, STUCK, NOT_REACHED}
    assert {cause for _, _, cause in TABLE if cause} == every


def test_every_rule_has_a_case() -> None:
    """FR-001 is the case in which the others cannot tell, FR-007 that in which none applies."""
    source = Path(flight_rules.__file__).read_text()
    rules = set(re.findall(r'"(FR-\d{3})"', source))
    assert rules == {rule for _, rule, _ in TABLE} | {"FR-001"}


def only(verdicts: tuple[Verdict, ...]) -> Verdict:
    (verdict,) = verdicts
    return verdict


def test_the_missing_rank_is_named_with_its_last_call() -> None:
    verdict = only(judge(dumps([DONE, IN], [DONE], [DONE, IN])))
    assert verdict.measured["missing_ranks"] == [1]
    assert "rank 1 did not: its last is nccl:all_reduce number 1" in verdict.reason


def test_a_missing_dump_is_unknown_and_named() -> None:
    stuck = only(judge(dumps([DONE, IN], [DONE, IN], members=3)))
    assert (stuck.kind, stuck.rule) == (Kind.UNDECIDABLE, "FR-001")
    assert "nothing is recorded of rank 2" in stuck.reason
    done = only(judge(dumps([DONE], [DONE], members=3)))
    assert (done.kind, done.rule) == (Kind.UNDECIDABLE, "FR-001")


def test_numbers_that_left_a_ring_are_not_missed() -> None:
    long = [entry(seq) for seq in range(1, 40)]
    assert only(judge(dumps(long, long[20:]))).status is Status.PASS


def test_sizes_may_differ_where_the_operation_lets_them() -> None:
    name = "nccl:all_to_all"
    one, two = (entry(1, profiling_name=name, input_sizes=[[n]]) for n in (8, 16))
    assert only(judge(dumps([one], [two]))).status is Status.PASS


def test_a_reduce_scatter_of_different_sizes_is_no_hardware() -> None:
    """What FSDP calls: each rank reduces all of it, so that it is as large everywhere."""
    name = "nccl:_reduce_scatter_base"
    one, two = (
        entry(1, profiling_name=name, input_sizes=[[n]], state="started") for n in (4096, 4000)
    )
    verdict = only(judge(dumps([one], [one], [two])))
    assert (verdict.rule, verdict.cause) == ("FR-004", SIZES)
    assert "rank 2 with [[4000]] Float" in verdict.reason


@pytest.mark.parametrize(("state", "cause"), [("started", STUCK), ("scheduled", NOT_REACHED)])
def test_what_holds_all_its_ranks_explains_why_they_never_came(state: str, cause: object) -> None:
    """Tensor-parallel pairs 0-1 and 2-3, data-parallel pairs 0-2 and 1-3: 2-3 do not end."""
    tp = [entry(1, process_group=("1", "tp")), entry(2, process_group=("1", "tp"))]
    stuck = [[entry(1, process_group=("2", "tp"), state=each)] for each in ("started", state)]
    dp = [[entry(1, process_group=(name, "dp"), state="started")] for name in ("3", "4")]
    found = dumps(
        [*tp, *dp[0]], [*tp, *dp[1]], stuck[0], stuck[1],
        groups={"1": [0, 1], "2": [2, 3], "3": [0, 2], "4": [1, 3]},
    )  # fmt: skip
    verdict = only(judge(found))
    assert verdict.cause is cause
    assert "number 1 of group 2" in verdict.reason


def test_a_late_gpu_that_waits_for_a_missing_rank_is_not_the_cause() -> None:
    """Rank 3 never came to 2-3, and so rank 2 is late in 1-2, and rank 1 in 0-1."""
    pairs = {"1": [0, 1], "2": [1, 2], "3": [2, 3]}
    name = {key: (key, "pair") for key in pairs}
    found = dumps(
        [entry(1, process_group=name["1"], state="started")],
        [entry(1, process_group=name["2"], state="started")],
        [
            entry(1, process_group=name["3"], state="started"),
            entry(1, process_group=name["2"], state="scheduled"),
        ],
        [],
        groups=pairs,
    )
    verdict = only(judge(found))
    assert (verdict.cause, verdict.measured["missing_ranks"]) == (NEVER_CALLED, [3])


def test_a_group_that_only_waits_follows_from_the_one_that_parted() -> None:
    tp = entry(1, process_group=("1", "tp"), state="started")
    found = judge(dumps([DONE, IN, tp], [DONE, tp], [DONE, IN]))
    assert [verdict.rule for verdict in found] == ["FR-002"]


def test_with_gloo_states_prove_nothing() -> None:
    idle = entry(1, profiling_name="gloo:all_reduce", state="scheduled")
    assert only(judge(dumps([idle], [idle]))).kind is Kind.UNDECIDABLE
    more = entry(2, profiling_name="gloo:all_reduce", state="scheduled")
    assert only(judge(dumps([idle, more], [idle]))).rule == "FR-002"


def test_the_recorded_dumps() -> None:
    analysis = analyse_hang([str(RECORDED / "fr-nccl-missing-rank2")])
    (finding,) = analysis.results[0].findings
    assert (finding.verdict.rule, finding.verdict.measured["missing_ranks"]) == ("FR-002", [2])
    for pattern in ("*.json", "comm_lib_trace_rank_*"):
        analysis = analyse_hang([str(RECORDED / "fr-gloo-desync" / pattern)])
        (finding,) = analysis.results[0].findings
        assert finding.verdict.rule == "FR-003"
        assert "rank 1 called gloo:all_gather" in finding.verdict.reason
    pickled = flight.read((RECORDED / "fr-gloo-desync/comm_lib_trace_rank_0").read_bytes(), "0")
    as_json = flight.read((RECORDED / "fr-gloo-desync/rank0.json").read_bytes(), "0")
    assert pickled is not None
    assert as_json is not None
    assert flight.without_frames(pickled).entries == as_json.entries


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("nccl_trace_rank_3", 3),
        ("/tmp/nccl_trace_rank_3.pickle.gz", 3),
        ("nccl_trace_rank_3_gpu-07", 3),  # no rank 7: the host was put behind it
        ("gpu-07_rank3_dump.json", 3),
        ("rank3/dump.pickle", 3),
        ("dump_12", 12),
        ("dump", None),
    ],
)
def test_the_rank_of_a_dump(name: str, rank: int | None) -> None:
    told = flight.dump({"version": "2.10", "entries": [], "pg_config": {}}, name)
    assert told.rank == rank


def test_frames_are_shown_with_permission_only(tmp_path: Path) -> None:
    frames = [
        {"name": "all_reduce", "filename": "/x/torch/distributed/c10d.py", "line": 7},
        {"name": "step", "filename": "/home/me/secret_model.py", "line": 42},
    ]
    for rank, entries in enumerate(([DONE, IN], [entry(1, frames=frames)])):
        config = {"0": {"ranks": "[0, 1]", "desc": ""}}
        document = {"version": "2.10", "entries": entries, "pg_config": config}
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(document, protocol=2))
    assert "secret_model" not in str(analyse_hang([str(tmp_path)]))
    assert "secret_model.py:42" in str(analyse_hang([str(tmp_path)], frames=True))


class Executed:
    """Would make a folder if a pickle were simply loaded."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (os.mkdir, (self.path,))


HOSTILE = [
    b"cos\nsystem\n(S'touch /tmp/commcheck-executed'\ntR.",
    b"\x80\x02cbuiltins\neval\nX\x01\x00\x00\x001\x85R.",
    b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x8c\x06system\x93.",
    b"\x80\x02(lr\xff\xff\xff\x7f.",  # a memo of 2^31 places
    b"\x80\x02\x8a\xff.",
    b"\x80\x02]" + b"(" * 100_000 + b".",
    b"\x80\x02}\x82\x01.",
    b"\x80\x02Q.",
    b"\x80\x05\x97.",
    pickle.dumps({"entries": [datetime.datetime.now(datetime.UTC)]}, protocol=2),
]


@pytest.mark.parametrize("data", HOSTILE)
def test_hostile_pickles_are_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "rank0").write_bytes(data)
    with pytest.raises(UsageError):
        analyse_hang([str(tmp_path / "rank0")])


def test_nothing_of_a_pickle_is_executed(tmp_path: Path) -> None:
    made = tmp_path / "made"
    for protocol in (2, 3, 4, 5):
        data = pickle.dumps({"entries": [Executed(str(made))]}, protocol=protocol)
        with pytest.raises(UsageError, match="no data"):
            flight.plain_pickle(data, "rank0")
    assert not made.exists()


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
KEYS = st.sampled_from([*entry(1), "frames", "p2p_seq_id", "pg_id", "seq_id", "record_id"])


@settings(max_examples=25)
@given(
    st.lists(st.dictionaries(KEYS, PLAIN, max_size=8) | PLAIN, max_size=5),
    PLAIN,
    st.integers(0, 400),
    st.binary(max_size=4),
)
def test_no_dump_raises_anything_else(
    entries: list[Any], config: Any, cut: int, junk: bytes
) -> None:
    document = {"version": "2.10", "entries": entries, "pg_config": config}
    for data in (pickle.dumps(document, protocol=2), json.dumps(document).encode()):
        for damaged in (data, data[:cut], data[:cut] + junk + data[cut:]):
            try:
                dump = flight.read(damaged, "rank_0")
            except UsageError:
                continue
            if dump is not None:
                other = flight.dump({"entries": [DONE, IN]}, "rank_1")
                assert judge(by_rank([dump, other]))


def test_ranks_are_told_briefly() -> None:
    assert some([0, 1, 2, 5]) == "ranks 0-2, 5"
    assert some([7]) == "rank 7"
    assert len(some(list(range(0, 4000, 2)))) < 80
