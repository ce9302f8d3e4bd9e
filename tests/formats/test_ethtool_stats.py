"""Counters by the driver's names; what is not there is not zero."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.ethtool_stats import parse

RECORDED = Path(__file__).parents[1] / "recorded" / "ethtool"


def read(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        (
            "stats-mlx5-good",
            {
                "rx_prio3_pause": 412,
                "tx_prio3_pause": 96,
                "rx_discards_phy": 0,
                "rx_out_of_buffer": 0,
                "rx_pcs_symbol_err_phy": 0,
                "rx_symbol_err_phy": 0,
                "link_down_events_phy": 1,
                "rx_corrected_bits_phy": 18220114,
                "rx_64_bytes_phy": 0,
                "rx_prio0_pause": None,
                "rx0_packets": None,  # of one queue
                "ch0_events": None,
            },
        ),
        (
            "stats-mlx5-discards",
            {"rx_discards_phy": 918223, "rx_prio0_discards": 918223, "rx_prio3_pause": None},
        ),
        ("stats-mlx5-global-pause", {"rx_global_pause": 19223, "rx_prio3_pause": None}),
        ("stats-mlx5-out-of-buffer", {"rx_out_of_buffer": 5512034, "tx_prio3_pause": 39211022}),
        (
            "stats-mlx5-pause-storm",
            {
                "rx_prio3_pause": 48211004,
                "rx_prio3_pause_duration": 2920118332,
                "tx_prio3_pause": 88120331,
                "tx_pause_storm_warning_events": 17,
                "tx_pause_storm_error_events": 3,
            },
        ),
        (
            "stats-mlx5-symbol-errors",
            {
                "rx_pcs_symbol_err_phy": 77120,
                "rx_symbol_err_phy": 1203,
                "rx_crc_errors_phy": 411,
                "link_down_events_phy": 23,
            },
        ),
        (
            "stats-bnxt-good",
            {
                "rx_pfc_ena_frames_pri3": 310,
                "tx_pfc_ena_frames_pri3": 42,
                "rx_stat_discard": 0,
                "rx_pcs_symbol_err": 0,
                "link_down_events": 0,
            },
        ),
        (
            "stats-bnxt-discards",
            {
                "rx_stat_discard": 441022,
                "rx_discard_packets_cos0": 441022,
                "rx_fec_uncorrectable_blocks": 98,
                "link_down_events": 4,
            },
        ),
        ("stats-efa-ena", {"rx_discards_phy": None, "rx_prio3_pause": None}),
    ],
)
def test_facts_of_the_recordings(name: str, facts: dict[str, int | None]) -> None:
    for text in (read(name), read(name).replace("\n", "\r\n"), f"\x1b[0m{read(name)}"):
        counters = parse(Output(text))
        assert {each: counters.get(each) for each in facts} == facts


@pytest.mark.parametrize(
    ("stderr", "rc"),
    [
        (read("stats-none"), 94),
        ("Cannot get stats strings information: Operation not supported\n", 96),
    ],
)
def test_a_driver_without_counters_has_none(stderr: str, rc: int) -> None:
    assert parse(Output("", stderr, rc)).values == {}


def test_no_such_device_is_no_answer() -> None:
    with pytest.raises(CommandFailed, match="No such device"):
        parse(Output("", "Cannot get stats strings information: No such device\n", 96))


@settings(max_examples=60)
@given(st.integers(0, 4000))
def test_a_cut_answer_gives_no_wrong_number(cut: int) -> None:
    text = read("stats-mlx5-pause-storm")
    whole = parse(Output(text)).values
    try:
        part = parse(Output(text[:cut])).values
    except ParseError:
        return
    assert part.items() <= whole.items()


@pytest.mark.parametrize("line", ["     rx_bytes: many", "     rx_bytes 12", "rx_bytes: 12"])
def test_a_damaged_line_is_refused(line: str) -> None:
    with pytest.raises(ParseError):
        parse(Output(f"NIC statistics:\n     tx_bytes: 1\n{line}\n"))


def test_queues_and_doubled_names() -> None:
    text = (
        "NIC statistics:\n     [0]: rx_ucast_packets: 7\n     rx12_bytes: 8\n"
        "     rx_out_of_buffer: 3\n     rx_out_of_buffer: 9\n     rx_bytes: -1\n"
    )
    assert parse(Output(text)).values == {"rx_out_of_buffer": 3, "rx_bytes": -1}
