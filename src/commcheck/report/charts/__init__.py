"""Figures drawn: the data of a verdict's figure in, a drawing out. Pure, and made here by hand.

A form's data may come from a run folder that somebody sent, so its shape is checked: what does
not fit is ``None``, and the page says that it could not be drawn.

====== =======================================================================================
form   data
====== =======================================================================================
curve  ``x`` and ``y``: ``label``, ``unit``, ``x`` also ``log``; ``series`` of ``name``,
       ``style`` (measured, predicted, other), ``points``; ``lines`` of ``name``, ``y``;
       ``marks`` of ``x``, ``y``, ``text``
lanes  ``unit``, ``span``, ``lanes`` of ``name`` and ``spans``: start, end, kind, label
ring   ``order`` of ``rank`` and ``host``, ``crossings``, ``minimum``, ``missing`` ranks
matrix ``rows``, ``columns``, ``unit``, ``cells``, ``floor``
====== =======================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from commcheck.model import Figure
from commcheck.report.charts import curve, lanes, matrix, ring
from commcheck.report.charts.drawing import Drawing

_FORMS: Final[Mapping[str, Callable[[Mapping[str, Any]], Drawing | None]]] = {
    "curve": curve.draw,
    "lanes": lanes.draw,
    "matrix": matrix.draw,
    "ring": ring.draw,
}


def draw(figure: Figure) -> Drawing | None:
    """The drawing of a figure; None where its form or data are not what they should be."""
    maker = _FORMS.get(figure.form)
    if maker is None:
        return None
    try:
        return maker(figure.data)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError):
        return None
