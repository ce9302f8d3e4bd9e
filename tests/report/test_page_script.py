"""What the page's script does, in a real Chromium: search, links, copying, languages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from commcheck.diagnose import diagnose
from commcheck.report import html
from tests.report.browser import CHROMIUM, Browser, browser
from tests.report.runs import incident

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

RUNBOOK = """\
<a id="physical-pfc-enabled"></a>

### PFC where RoCE is (`physical.pfc-enabled`)

**Why.** Lossless, see `mlnx_qos`.

- one
- two
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Browser, str]]:
    path = tmp_path_factory.mktemp("script") / "report.html"
    path.write_bytes(html.render(incident(), runbook=RUNBOOK))
    with browser(tmp_path_factory.mktemp("profile")) as chromium:
        chromium.look(1280)
        yield chromium, path.as_uri()


def typed(chromium: Browser, text: str) -> None:
    chromium.value(
        f"(() => {{const box = document.getElementById('search'); box.value = {text!r};"
        " box.dispatchEvent(new Event('input')); return 0})()"
    )


def shown(chromium: Browser, kind: str) -> list[str]:
    found = chromium.value(
        f"[...document.querySelectorAll('{kind}')].filter(e => e.checkVisibility()).map(e => e.id)"
    )
    return list(found)


@pytest.mark.parametrize(
    ("words", "cards", "hosts"),
    [
        ("pfc-enabled node-0003", ["cause-physical-pfc-enabled-pfc-not-on-roce-priority"],
         ["host-node-0003"]),
        ("status:warn", ["cause-physical-nic-firmware-firmware-differs-warn"], []),
        ("host:node-0002 -check:pfc", ["cause-physical-nic-firmware-firmware-differs-warn"], []),
        ("host:gpu.example", [], ["host-gpu.example.com"]),
        ("nothing-like-it", [], []),
    ],
)  # fmt: skip
def test_search_finds_hosts_even_where_they_are_folded(
    page: tuple[Browser, str], words: str, cards: list[str], hosts: list[str]
) -> None:
    chromium, url = page
    chromium.open(url, settle_s=0)
    typed(chromium, words)
    assert shown(chromium, "#causes details.card") == cards
    assert shown(chromium, "details.host") == hosts
    said = chromium.value("document.getElementById('found').textContent")
    assert ("nothing matches" in said) is (not cards and not hosts)
    typed(chromium, "")
    assert len(shown(chromium, "#causes details.card")) == 2


@pytest.mark.parametrize(
    ("link", "opened"),
    [
        ("#host-node-0002", "host-node-0002"),
        ("#h=node-0003", "host-node-0003"),
        ("#h=node-0003&c=physical.pfc-enabled", "host-node-0003"),
        ("#c=physical.nic-firmware", "cause-physical-nic-firmware-firmware-differs-warn"),
        ("#runbook-physical-pfc-enabled", "runbook-physical-pfc-enabled"),
    ],
)
def test_a_deep_link_opens_what_it_means(page: tuple[Browser, str], link: str, opened: str) -> None:
    chromium, url = page
    chromium.open("about:blank", settle_s=0)
    chromium.open(url + link, settle_s=0.1)
    assert chromium.value(f"document.getElementById('{opened}').open")
    top = chromium.value(f"document.getElementById('{opened}').getBoundingClientRect().top")
    assert -5 <= top <= 800


def test_a_search_is_a_link(page: tuple[Browser, str]) -> None:
    chromium, url = page
    chromium.open("about:blank", settle_s=0)
    chromium.open(url + "#q=status%3Awarn", settle_s=0.1)
    assert chromium.value("document.getElementById('search').value") == "status:warn"
    assert shown(chromium, "details.host") == []


def test_the_language_changes_whole_and_back(page: tuple[Browser, str]) -> None:
    chromium, url = page
    chromium.open(url, settle_s=0)
    english = chromium.value("document.body.textContent")
    click = "document.getElementById('language').click()"
    chromium.value(click)
    says = diagnose(incident()).says
    assert chromium.value("document.querySelector('h1').textContent") == says.zh
    assert chromium.value("document.documentElement.lang") == "zh-Hans"
    chinese = chromium.value("document.body.innerText")
    for word in ("阶梯", "物理层", "问题出在这一层", "下一步", "RoCE 优先级未开启 PFC", "复制"):
        assert word in chinese
    for word in ("Ladder", "breaks here", "Do next", "Not judged", "Copy", "gated"):
        assert word not in chinese.replace("gated:", "")
    chromium.value(click)
    assert chromium.value("document.body.textContent") == english


def test_a_host_list_is_copied_whole(page: tuple[Browser, str]) -> None:
    chromium, url = page
    chromium.open(url, settle_s=0)
    chromium.value(
        "navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve() }"
    )
    chromium.value("document.querySelector('.answers button.copy').click()")
    assert chromium.value("window.copied") == "node-0002,node-0003"
    chromium.value("document.getElementById('chat').click()")
    chat = chromium.value("window.copied")
    assert chat.startswith("**FAIL**: Physical layer is where it breaks")
    assert "mlnx_qos -i eth2" in chat
    assert "report.html" in chat


def test_where_there_is_no_clipboard_the_text_is_marked(page: tuple[Browser, str]) -> None:
    chromium, url = page
    chromium.open(url, settle_s=0)
    chromium.value("navigator.clipboard.writeText = () => Promise.reject(new Error('no'))")
    chromium.value("document.querySelector('.answers pre.command + button.copy').click()")
    assert chromium.value("getSelection().toString()").startswith("mlnx_qos -i eth2")


def test_printing_opens_the_causes_and_hides_the_tools(page: tuple[Browser, str]) -> None:
    chromium, url = page
    chromium.open(url, settle_s=0)
    chromium.value("dispatchEvent(new Event('beforeprint'))")
    assert (
        chromium.value("document.querySelectorAll('#causes details.card:not([open])').length") == 0
    )
    chromium.ask("Emulation.setEmulatedMedia", media="print")
    assert not chromium.value("document.querySelector('.tools').checkVisibility()")
    chromium.ask("Emulation.setEmulatedMedia", media="")


def test_the_map_says_what_is_under_the_pointer(page: tuple[Browser, str]) -> None:
    chromium, url = page
    chromium.open(url, settle_s=0)
    chromium.value(
        "(() => {const map = document.querySelector('svg.map'), box = map.getBoundingClientRect(),"
        " at = {clientX: box.left + box.width * .4,"
        " clientY: box.top + box.height * 30 / map.viewBox.baseVal.height};"
        " map.dispatchEvent(new MouseEvent('mousemove', at)); map.dispatchEvent("
        "new MouseEvent('click', at)); return 0})()"
    )
    assert "node-0002 · physical.nic-link-up" in chromium.value(
        "document.getElementById('under').textContent"
    )
    assert chromium.value("location.hash") == "#h=node-0002"
    assert chromium.of("Runtime.exceptionThrown", "Log.entryAdded") == []
