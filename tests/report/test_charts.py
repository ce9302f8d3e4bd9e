"""Figures drawn: what is shown, that nothing lies outside, that foreign data draws nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import html as lxml_html

from commcheck.model import Figure, Finding, Status, Words
from commcheck.report.charts import draw
from commcheck.report.charts.drawing import WIDTH, amount, log_ticks, thinned, ticks
from commcheck.report.html import render
from tests.report.runs import incident

CURVE: dict[str, Any] = {
    "x": {"label": "message size", "unit": "bytes", "log": True},
    "y": {"label": "bus bandwidth", "unit": "GB/s"},
    "series": [
        {"name": "all_reduce", "style": "measured",
         "points": [[2.0**p, min(180.0, 2.0 ** (p - 20))] for p in range(10, 34)]},
        {"name": "expected", "style": "predicted", "points": [[1024, 0.1], [2**33, 190]]},
    ],
    "lines": [{"name": "line rate", "y": 200}],
    "marks": [{"x": 2**20, "y": 1, "text": "collapses here"}],
}  # fmt: skip
LANES: dict[str, Any] = {
    "unit": "ns",
    "span": [0, 1_000_000],
    "lanes": [
        {"name": "compute", "spans": [[0, 400_000, "compute", "gemm"],
                                      [700_000, 900_000, "compute", "gemm"]]},
        {"name": "communication", "spans": [[300_000, 400_000, "comm", "allreduce"],
                                            [400_000, 700_000, "exposed", "allreduce"]]},
    ],
}  # fmt: skip
RING: dict[str, Any] = {
    "order": [{"rank": rank, "host": f"gpu-{rank % 2:02d}"} for rank in range(8)],
    "crossings": 8,
    "minimum": 2,
    "missing": [9],
}
MATRIX: dict[str, Any] = {
    "rows": ["a", "b", "c"],
    "columns": ["a", "b", "c"],
    "unit": "GB/s",
    "cells": [[None, 45.0, 12.0], [45.0, None, 44.0], [12.0, 44.0, None]],
    "floor": 40.0,
}
GOOD = {"curve": CURVE, "lanes": LANES, "ring": RING, "matrix": MATRIX}


def figure(form: str, data: dict[str, Any]) -> Figure:
    return Figure(form, Words("A picture", "图"), data)


def texts(form: str) -> str:
    drawing = draw(figure(form, GOOD[form]))
    assert drawing is not None
    return " | ".join(f"{each.text}{each.title}" for each in drawing.shapes)


def test_each_form_says_its_numbers() -> None:
    assert "line rate 200" in texts("curve")
    assert "collapses here" in texts("curve")
    assert "4 MiB" in texts("curve")
    assert "allreduce, 300 µs" in texts("lanes")
    assert "communication, exposed" in texts("lanes")
    assert "8 crossings" in texts("ring")
    assert "2 would do" in texts("ring")
    assert "a with c: 12 GB/s" in texts("matrix")


def test_each_drawing_has_its_sentence_and_its_numbers() -> None:
    drawings = {form: draw(figure(form, data)) for form, data in GOOD.items()}
    says = {form: drawing.says for form, drawing in drawings.items() if drawing}
    assert says["matrix"] == "6 values from 12 GB/s to 45 GB/s; 2 below 40 GB/s"
    assert says["ring"].startswith(
        "8 of 8 steps leave a host; 2 would do; ranks that never came: 9"
    )
    assert "communication: 300 µs communication, exposed" in says["lanes"]
    tables = [drawing.table.rows for drawing in drawings.values() if drawing]
    assert all(tables)


@pytest.mark.parametrize("form", GOOD)
def test_nothing_lies_outside(form: str) -> None:
    drawing = draw(figure(form, GOOD[form]))
    assert drawing is not None
    for shape in drawing.shapes:
        places = [float(shape.attributes[name]) for name in ("x", "cx") if name in shape.attributes]
        assert all(-1 <= place <= WIDTH for place in places), shape
        for name in ("y", "cy"):
            assert 0 <= float(shape.attributes.get(name, 1)) <= drawing.height, shape


@pytest.mark.parametrize("form", GOOD)
def test_damaged_data_draws_nothing_or_something_and_never_raises(form: str) -> None:
    for key in GOOD[form]:
        for wrong in (None, "x", [], [[1]], {"a": 1}, float("nan"), -1, [None]):
            draw(figure(form, {**GOOD[form], key: wrong}))
        draw(figure(form, {name: each for name, each in GOOD[form].items() if name != key}))
    assert draw(figure("unknown", GOOD[form])) is None


def test_what_no_screen_can_tell_apart_is_one_span_and_times_stay_whole() -> None:
    spans = [[at * 10, at * 10 + 9, "compute", "k"] for at in range(100_000)]
    drawing = draw(figure("lanes", {**LANES, "lanes": [{"name": "compute", "spans": spans}]}))
    assert drawing is not None
    assert len(drawing.shapes) < 50
    assert drawing.table.rows[0] == ("compute", "compute", "900 µs")


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
@settings(max_examples=60)
def test_ticks_are_few_round_and_inside(low: float, width: float) -> None:
    found = list(ticks(low, low + width))
    assert len(found) <= 8
    assert all(low - 1e-6 * width <= each <= low + width * (1 + 1e-6) for each in found)


def test_log_ticks() -> None:
    assert list(log_ticks(1000, 5000)) == [1024, 2048, 4096]
    assert len(list(log_ticks(8, 2**34))) <= 10


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 100)), min_size=1, unique=True))
@settings(max_examples=50)
def test_thinning_keeps_the_extremes(points: list[tuple[float, float]]) -> None:
    kept = thinned(sorted(points), 10)
    assert len(kept) <= 12
    assert max(y for _, y in kept) == max(y for _, y in points)
    assert min(y for _, y in kept) == min(y for _, y in points)


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [(8 * 2**20, "bytes", "8 MiB"), (1500, "ns", "1.5 µs"), (0.25, "GB/s", "0.25 GB/s"),
     (2e6, "", "2M"), (0, "", "0")],
)  # fmt: skip
def test_amounts(value: float, unit: str, said: str) -> None:
    assert amount(value, unit) == said


def test_a_page_draws_the_figures_of_its_verdicts_escaped() -> None:
    broken_run = incident()
    hostile = {**RING, "order": [{"rank": 0, "host": '"><script>alert(1)</script>'}]}
    results = list(broken_run.results)
    finding = results[0].findings[0]
    verdict = replace(finding.verdict, figures=(figure("ring", hostile), figure("curve", {})))
    results[0] = replace(results[0], findings=(replace(finding, verdict=verdict),))
    page = render(replace(broken_run, results=tuple(results)))
    assert b"<script>" not in page.partition(b"<script type=")[0]
    tree = lxml_html.fromstring(page)
    (title,) = [each.text for each in tree.iter("title") if "<script>" in (each.text or "")][:1]
    assert re.match(r'"><script>alert\(1\)</script>: ranks 0', title)
    assert "cannot be drawn" in tree.text_content()


@pytest.mark.parametrize(
    ("drawn", "noun", "order"),
    [
        (Status.FAIL, "host", ["causes", "charts", "not-judged", "fleet"]),
        (Status.PASS, "host", ["causes", "not-judged", "fleet", "charts"]),
        (Status.PASS, "file", ["causes", "charts", "not-judged"]),
    ],
)
def test_pictures_of_what_passes_stand_below_what_is_broken_or_unknown(
    drawn: Status, noun: str, order: list[str]
) -> None:
    def with_picture(finding: Finding) -> Finding:
        if finding.verdict.status is not drawn:
            return finding
        return replace(finding, verdict=replace(finding.verdict, figures=(figure("ring", RING),)))

    record = incident()
    results = tuple(
        replace(each, findings=tuple(map(with_picture, each.findings))) for each in record.results
    )
    page = render(replace(record, results=results, info=replace(record.info, noun=noun)))
    tree = lxml_html.fromstring(page)
    for found in (
        [each.get("id") for each in tree.iter("section")],
        [each.get("href")[1:] for each in tree.xpath("//nav//a")],
    ):
        assert [each for each in found if each in order] == order
