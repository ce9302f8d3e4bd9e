"""Sends and receives in the flight recorder's dumps: who waits for whom, and for what."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from commcheck.model import Kind, Status
from commcheck.nccl import flight, flight_p2p
from commcheck.nccl.flight_groups import by_rank
from commcheck.nccl.flight_p2p import EACH_WAITS, INSIDE, PEER_MISSING
from commcheck.nccl.flight_rules import NEVER_CALLED, judge
from tests.nccl.recorders import DONE, IN, dumps, entry
from tests.nccl.test_flight import only


def moved(name: str, number: int = 1, state: str = "started", **more: Any) -> dict[str, Any]:
    """A send or a receive; numbers of peers are those within the group."""
    told = {"profiling_name": f"nccl:{name}", "state": state, "is_p2p": True}
    return entry(0, **{**told, "p2p_seq_id": number, "record_id": 9, **more})


def whole(*entries: dict[str, Any]) -> list[dict[str, Any]]:
    """A ring that has lost nothing."""
    return [{**each, "record_id": number} for number, each in enumerate(entries)]


SENT, GOT = moved("send 0->1", state="completed"), moved("recv 1<-0", state="completed")
SEND, RECV = moved("send 0->1", 2), moved("recv 1<-0", 2)

# (what each rank recorded, rule, cause)
TABLE = [
    ([whole(DONE, SENT), whole(DONE, GOT, RECV)], "FR-008", PEER_MISSING),
    ([whole(DONE, SENT, SEND), whole(DONE, GOT)], "FR-008", PEER_MISSING),
    ([whole(moved("send 0->1")), whole(moved("send 1->0"))], "FR-009", EACH_WAITS),
    ([whole(SENT, SEND), whole(GOT, RECV)], "FR-005", INSIDE),
    ([whole(SENT, moved("send 0->1", 2, "completed")), whole(GOT, RECV)], "FR-005", INSIDE),
]


@pytest.mark.parametrize(("ranks", "rule", "cause"), TABLE)
def test_what_a_transfer_waits_for(
    ranks: list[list[dict[str, Any]]], rule: str, cause: object
) -> None:
    verdict = only(judge(dumps(*ranks)))
    assert (verdict.rule, verdict.cause, verdict.status) == (rule, cause, Status.FAIL)


def test_every_rule_and_cause_has_a_case() -> None:
    """FR-001 and FR-006 are those in which the dumps cannot tell."""
    rules = set(re.findall(r'"(FR-\d{3})"', Path(flight_p2p.__file__).read_text()))
    assert rules == {rule for _, rule, _ in TABLE} | {"FR-001", "FR-006"}
    assert {cause for _, _, cause in TABLE} == {PEER_MISSING, EACH_WAITS, INSIDE}


def test_the_waiting_rank_and_its_peer_are_named() -> None:
    verdict = only(judge(dumps(whole(DONE, SENT), whole(DONE, GOT, RECV))))
    assert "rank 1 waits to receive from rank 0 (number 2 of group 0" in verdict.reason
    assert "which never sent: its last is nccl:send 0->1 (completed)" in verdict.reason
    assert verdict.measured["missing_ranks"] == [0]


def test_transfers_that_ended_pass() -> None:
    assert only(judge(dumps(whole(SENT), whole(GOT)))).status is Status.PASS
    assert only(judge(dumps([SENT, DONE], [GOT, DONE]))).status is Status.PASS


def pipeline(rank: int, *calls: dict[str, Any]) -> list[dict[str, Any]]:
    return whole(DONE, *({**each, "process_group": ("1", "pp")} for each in calls))


def test_a_pipeline_blames_the_first_of_those_who_wait() -> None:
    found = dumps(
        pipeline(0),
        pipeline(1, moved("recv 1<-0")),
        pipeline(2, moved("recv 2<-1")),
        pipeline(3, moved("recv 3<-2")),
        groups={"1": [0, 1, 2, 3]},
    )
    verdict = only(judge(found))
    assert "rank 1 waits to receive from rank 0" in verdict.reason
    assert "ranks 2-3 wait behind it" in verdict.reason
    assert verdict.measured == {"missing_ranks": [0], "waiting_ranks": 3}


def test_numbers_of_peers_are_those_of_the_group() -> None:
    found = dumps(
        [DONE], [DONE], pipeline(0), pipeline(1, moved("recv 1<-0")), groups={"1": [2, 3]}
    )
    assert "rank 3 waits to receive from rank 2" in only(judge(found)).reason


def test_a_collective_that_waits_for_one_who_receives_is_not_the_cause() -> None:
    """Rank 1 never called the second all_reduce because rank 0 never sent."""
    found = dumps(whole(DONE), whole(DONE, moved("recv 1<-0")), whole(DONE, IN))
    verdicts = judge(found)
    assert [verdict.cause for verdict in verdicts] == [NEVER_CALLED, PEER_MISSING]
    assert verdicts[1].measured["missing_ranks"] == [0]
    tp = {"process_group": ("1", "tp")}
    blocked = entry(1, state="started", **tp)
    found = dumps(
        whole(DONE), whole(DONE, moved("recv 1<-0")), whole(DONE, blocked), groups={"1": [1, 2]}
    )
    assert [verdict.cause for verdict in judge(found)] == [PEER_MISSING]


def test_a_transfer_that_waits_for_one_in_a_collective_is_not_the_cause() -> None:
    """Rank 0 never sent because it waits for rank 2."""
    tp = entry(1, state="started", process_group=("1", "tp"))
    found = dumps(
        whole(DONE, tp), whole(DONE, moved("recv 1<-0")), whole(DONE), groups={"1": [0, 2]}
    )
    verdict = only(judge(found))
    assert (verdict.cause, verdict.measured["missing_ranks"]) == (NEVER_CALLED, [2])


def test_a_batch_has_the_state_of_what_closes_it() -> None:
    """``batch_isend_irecv``: each transfer stays scheduled, and ``coalesced`` behind it tells."""

    def batch(name: str, state: str, number: int = 1) -> list[dict[str, Any]]:
        closing = moved("coalesced", number, state, input_sizes=[], input_dtypes=[])
        return [moved(name, number, "scheduled"), closing]

    ended = [whole(*batch("send 0->1", "completed")), whole(*batch("recv 1<-0", "completed"))]
    assert only(judge(dumps(*ended))).status is Status.PASS
    more = whole(*batch("recv 1<-0", "completed"), *batch("recv 1<-0", "started", 2))
    assert only(judge(dumps(ended[0], more))).cause is PEER_MISSING


def test_without_times_nobody_knows_whether_a_transfer_began() -> None:
    found = dumps(
        whole(moved("send 0->1", 1, "scheduled")), whole(moved("recv 1<-0", 1, "scheduled"))
    )
    verdict = only(judge(found))
    assert (verdict.kind, verdict.rule) == (Kind.UNDECIDABLE, "FR-006")
    assert "TORCH_NCCL_ENABLE_TIMING=1" in verdict.reason


def test_a_ring_that_lost_its_beginning() -> None:
    """In a group of two the numbers agree; in a larger one each counts for itself."""
    late = [[moved("send 0->1", 7, "completed")], [moved("recv 1<-0", 7, "completed")]]
    late[1].append(moved("recv 1<-0", 8))
    assert only(judge(dumps(*late))).cause is PEER_MISSING
    late[0].append(moved("send 0->1", 8, "completed"))
    assert only(judge(dumps(*late))).cause is INSIDE
    larger = only(judge(dumps(*late, [])))
    assert (larger.kind, larger.rule) == (Kind.UNDECIDABLE, "FR-001")
    assert "rank 1 waits to receive from rank 0" in larger.reason


def test_numbers_of_two_that_disagree_prove_nothing() -> None:
    """One put both into a batch, the other called them one by one."""
    one = [moved("send 0->1", n, "completed") for n in (5, 6, 7, 8)]
    two = [moved("recv 1<-0", n, "completed") for n in (5, 7, 8)]
    verdict = only(judge(dumps(one, [*two, moved("recv 1<-0", 9)])))
    assert verdict.kind is Kind.UNDECIDABLE


def test_a_peer_without_a_dump() -> None:
    verdict = only(judge(dumps(whole(DONE), whole(DONE, moved("recv 1<-2")), members=3)))
    assert verdict.kind is Kind.UNDECIDABLE
    assert "rank 1 waits to receive from rank 2" in verdict.reason


def test_a_rank_whose_ring_lost_a_group_is_not_missing() -> None:
    """Its transfers have pushed the collective out of the ring."""
    busy = [moved("send 2->3", n, "completed", record_id=n) for n in (90, 91)]
    verdict = only(judge(dumps([DONE, IN], [DONE, IN], busy)))
    assert verdict.kind is Kind.UNDECIDABLE
    assert "nothing is recorded of rank 2" in verdict.reason


def old(seq: int, name: str = "all_reduce", state: str = "completed", group: int = 0) -> Any:
    """An entry of version 1.4 (c10d's TraceUtils.h in torch 2.3): no name of the group."""
    return {
        "pg_id": group,
        "seq_id": seq,
        "profiling_name": f"nccl:{name}",
        "input_sizes": [[1024]],
        "state": state,
    }


def of_old(*ranks: tuple[list[Any], dict[int, list[int]] | None]) -> dict[int, flight.Dump]:
    told = []
    for rank, (entries, config) in enumerate(ranks):
        document: dict[str, Any] = {"version": "1.4", "entries": entries}
        if config is not None:
            document["pg_config"] = config
        told.append(flight.dump(document, f"nccl_trace_rank_{rank}"))
    return by_rank(told)


def test_dumps_of_version_1_are_read() -> None:
    config = {0: [0, 1]}
    found = of_old(([old(1), old(2, state="started")], config), ([old(1)], config))
    verdict = only(judge(found))
    assert (verdict.cause, verdict.measured["missing_ranks"]) == (NEVER_CALLED, [1])


def test_groups_of_version_1_are_known_by_their_members() -> None:
    """Each process counts its groups for itself: number 1 is another group on rank 2."""
    every = {0: [0, 1, 2, 3]}
    pairs = [{**every, 1: [0, 1]}, {**every, 1: [0, 1]}, {**every, 1: [2, 3]}, {**every, 1: [2, 3]}]
    calls = ["all_reduce", "all_reduce", "broadcast", "broadcast"]
    found = of_old(*(([old(1, name, group=1)], of) for name, of in zip(calls, pairs, strict=True)))
    assert only(judge(found)).status is Status.PASS
    assert set(found[2].members) == {"[0, 1, 2, 3]", "[2, 3]"}


def test_version_1_without_members_compares_everybody_s_group_only() -> None:
    found = of_old(
        ([old(1), old(1, group=1)], None), ([old(1), old(1, "broadcast", group=1)], None)
    )
    assert only(judge(found)).status is Status.PASS
    found = of_old(([old(1), old(1, state="started", group=1)], None), ([old(1)], None))
    assert only(judge(found)).kind is Kind.UNDECIDABLE


def test_numbers_that_transfers_share_with_collectives_are_not_compared() -> None:
    """Rank 2 took part in no transfer: its third call is the fifth of the others."""
    config = {0: [0, 1, 2]}
    found = of_old(
        ([old(1), old(2, "send 0->1"), old(3, state="started")], config),
        ([old(1), old(2, "recv 1<-0"), old(3, state="started")], config),
        ([old(1), old(2, state="started")], config),
    )
    verdict = only(judge(found))
    assert verdict.kind is Kind.UNDECIDABLE
    assert "numbers batches of transfers with its collectives" in verdict.reason


def test_a_batch_that_counts_as_a_collective() -> None:
    """Until torch 2.5 a batch raised ``collective_seq_id`` of those that took part (#134833)."""
    closing = entry(2, profiling_name="nccl:coalesced")
    batch = {"collective_seq_id": 2, "p2p_seq_id": 0}
    one = [DONE, moved("send 0->1", 0, "scheduled", **batch), closing, entry(3)]
    two = [DONE, moved("recv 1<-0", 0, "scheduled", **batch), closing, entry(3)]
    assert only(judge(dumps(one, two, [DONE, entry(2)]))).status is Status.PASS
