"""What others say of the page: axe-core of WCAG 2.1 A and AA, html-validate of its markup."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from commcheck.report import html
from commcheck.report.words import Lang
from tests.report import hostile
from tests.report.browser import CHROMIUM, Browser, browser
from tests.report.npm import installed
from tests.report.runs import healthy, incident
from tests.report.test_html import large

pytestmark = pytest.mark.slow

RECORDS = {
    "incident": incident(),
    "interrupted": incident("interrupted"),
    "healthy": healthy(),
    "hostile": hostile.record(),
    "big": large(400, 30, failing=2),
}
LEVELS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa")

RULES = {
    "extends": ["html-validate:standard"],
    "rules": {
        # Matters of taste, and what Jenkins' plain view needs: attributes where CSS is forbidden.
        "long-title": "off",
        "no-inline-style": "error",
        "no-deprecated-attr": "off",
        "attribute-allowed-values": "error",
        "require-sri": "off",
    },
}


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("needs Chromium (Debian: chromium)")
    with browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", RECORDS)
def test_no_violation_of_level_a_or_aa(
    chromium: Browser, tmp_path: Path, name: str, lang: Lang
) -> None:
    axe = (installed("axe-core") / "axe.min.js").read_text("utf-8")
    path = tmp_path / "report.html"
    path.write_bytes(html.render(RECORDS[name], lang=lang))
    for scheme in ("light", "dark"):
        chromium.look(1280, scheme=scheme)
        chromium.open(path.as_uri(), settle_s=0)
        if name != "big":  # what is folded there is more of the same
            chromium.value("document.querySelectorAll('details').forEach(d => { d.open = true })")
        chromium.value(axe)
        options = json.dumps({"runOnly": LEVELS, "resultTypes": ["violations", "passes"]})
        passes, found = chromium.awaited(
            f"axe.run({options}).then(said => [said.passes.length, said.violations.map("
            "each => [each.id, each.nodes.length, each.nodes[0].html.slice(0, 200),"
            " each.nodes[0].failureSummary])])"
        )
        assert found == [], scheme
        assert passes > 10  # rules that found something to look at


def test_the_markup_is_valid(tmp_path: Path) -> None:
    program = installed("html-validate") / "bin" / "html-validate.mjs"
    (tmp_path / ".htmlvalidate.json").write_text(json.dumps({"root": True, **RULES}))
    for name in RECORDS:
        (tmp_path / f"{name}.html").write_bytes(html.render(RECORDS[name]))
    done = subprocess.run(
        ["node", program, "--formatter", "text", *[f"{name}.html" for name in RECORDS]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, (done.stdout or done.stderr)[:4000]
