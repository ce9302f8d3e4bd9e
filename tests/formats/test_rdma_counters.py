"""Counters in sysfs: of the driver, of InfiniBand, of PCIe."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.rdma_counters import TOPS, parse, parse_aer

RECORDED = Path(__file__).parents[1] / "recorded" / "sysfs"


def read(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        (
            "hw-counters-good",
            {"np_cnp_sent": 1203, "rp_cnp_handled": 980, "out_of_sequence": 0, "lifespan": None},
        ),
        (
            "hw-counters-loss",
            {
                "out_of_sequence": 918223,
                "packet_seq_err": 440118,
                "local_ack_timeout_err": 1203,
                "roce_adp_retrans": 88120,
                "np_cnp_sent": 0,
            },
        ),
        ("hw-counters-icrc", {"rx_icrc_encapsulated": 712}),
        ("hw-counters-congested", {"np_cnp_sent": 99120331, "rp_cnp_handled": 77120334}),
        (
            "hw-counters-bnxt-loss",
            {
                "seq_err_naks_rcvd": 88120,
                "to_retransmits": 1203,
                "oos_drop_count": 918223,
                "rx_roce_discards": 1201,
                "out_of_sequence": None,
            },
        ),
        (
            "ib-counters-bad-link",
            {
                "symbol_error": 65535,
                "link_downed": 7,
                "link_error_recovery": 12,
                "port_rcv_errors": 2231,
                "local_link_integrity_errors": 15,
            },
        ),
        ("ib-counters-good", {"symbol_error": 0, "link_downed": 0}),
    ],
)
def test_facts_of_the_recordings(name: str, facts: dict[str, int | None]) -> None:
    counters = parse(Output(read(name)))
    assert {each: counters.get(each) for each in facts} == facts


def test_the_full_counters_of_a_bad_link_are_known_as_full() -> None:
    values = parse(Output(read("ib-counters-bad-link"))).values
    full = {name for name, top in TOPS.items() if values.get(name) == top}
    assert full == {"symbol_error", "local_link_integrity_errors"}


def test_a_pair_of_readings() -> None:
    first, second = read("hw-counters-sample-pair").split("# t=10\n")
    before = parse(Output(first.removeprefix("# t=0\n"))).values
    after = parse(Output(second)).values
    grown = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert grown == {"np_cnp_sent": 231}


AER = (
    "/sys/class/infiniband/mlx5_0/device/aer_dev_fatal:DLP 0\n"
    "/sys/class/infiniband/mlx5_0/device/aer_dev_fatal:TOTAL_ERR_FATAL 0\n"
    "/sys/class/infiniband/mlx5_0/device/aer_dev_correctable:RxErr 3\n"
    "/sys/class/infiniband/mlx5_0/device/aer_dev_correctable:TOTAL_ERR_COR 3\n"
)


def test_pcie_errors_by_kind() -> None:
    assert parse_aer(Output(AER)).values == {
        "fatal.DLP": 0,
        "fatal.TOTAL_ERR_FATAL": 0,
        "correctable.RxErr": 3,
        "correctable.TOTAL_ERR_COR": 3,
    }


@pytest.mark.parametrize("rc", [0, 1, 2])
def test_nothing_there_is_no_zero(rc: int) -> None:
    for parser in (parse, parse_aer):
        with pytest.raises(CommandFailed, match="no such counters"):
            parser(Output("", "", rc))


@settings(max_examples=60)
@given(st.integers(0, 2600))
def test_a_cut_answer_gives_no_wrong_number(cut: int) -> None:
    text = read("hw-counters-loss")
    whole = parse(Output(text)).values
    try:
        part = parse(Output(text[:cut])).values
    except (ParseError, CommandFailed):
        return
    assert part.items() <= whole.items()


@pytest.mark.parametrize(
    "line",
    [
        "/sys/class/infiniband/a/ports/1/hw_counters/out_of_sequence:many",
        "grep: hw_counters: Permission denied",
        "/sys/class/infiniband/a/ports/1/hw_counters/x:1\n" * 2,
    ],
)
def test_other_lines_are_refused(line: str) -> None:
    with pytest.raises(ParseError):
        parse(Output(f"{line.rstrip()}\n"))
