"""The page of `gpufleet status --html` in a browser without a network: drawn and harmless."""

from __future__ import annotations

import io
import re
import socket
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpufleet.core.names import fold_names
from gpufleet.facts.parse import parse_node_facts
from gpufleet.node.catalog import load_catalog
from gpufleet.status.groups import group_equal_rows
from gpufleet.status.models import FleetStatus
from gpufleet.status.page import as_html
from gpufleet.status.rows import fleet_of
from gpufleet.status.text import BAD_FLAGS
from scripts.browser import Browser
from tests.unit.status.fleets import HOSTILE, NOW, bare, fleet, healthy, seen, silent

pytestmark = [
    pytest.mark.extended,
    pytest.mark.claim(
        "The page of `status --html` works in a browser without a network, and shows hostile "
        "names as text.",
        level=7,
    ),
]
Image = pytest.importorskip("PIL.Image", reason="Pillow's pinned version needs Python 3.11")

CAPTURES = sorted((Path(__file__).parents[1] / "unit/facts/captures").glob("*.txt"))
IMAGE = '"><img src=x onerror=alert(1)>'
LONG = "5" * 900
READABLE, SEEN = 4.5, 3.0  # contrast of text and of drawings: WCAG 2.2, 1.4.3 and 1.4.11
BARS = """[...document.querySelectorAll('figure')].map(figure => ({
    title: figure.querySelector('figcaption').innerText,
    bars: [...figure.querySelectorAll('rect')].map(bar => {
        const at = bar.getBoundingClientRect();
        const line = bar.closest('svg').previousElementSibling;
        const over = document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2);
        return {label: line.previousElementSibling.innerText, number: Number(line.innerText),
                x: at.x, y: at.y, width: at.width, height: at.height, top: over === bar,
                text: line.previousElementSibling.getBoundingClientRect().height};
    })}))"""
CELLS = """[...document.querySelectorAll('tbody')].map(
    body => [...body.rows].map(row => [...row.cells].map(cell => cell.innerText)))"""
COLORS = """[...document.querySelectorAll('h1, p, .label, .number, th, td, .flag, summary, dt, dd')]
    .map(each => [each.innerText, getComputedStyle(each).color])"""


def captured() -> FleetStatus:
    """Every captured host, forty with a driver, one without, and one that does not answer."""
    hosts = [seen(f.stem, parse_node_facts(f.read_text().splitlines())) for f in CAPTURES]
    more = [seen(f"gpu-{n:02}", healthy()) for n in range(1, 41)]
    return fleet(*hosts, *more, seen("gpu-41", bare()), silent("gpu-42"), clusters=("lab",))


def hostile() -> FleetStatus:
    """Names and versions that would be elements of the page, or wider than it."""
    facts = replace(healthy(), lock_holder=f"apt{IMAGE}{HOSTILE}")
    kernel = replace(facts.kernel, release=f"5.15{IMAGE}")
    hosts = [
        seen(f"gpu{HOSTILE}", replace(facts, modules={"nvidia": f"580.1{IMAGE}"}, kernel=kernel)),
        seen(f"gpu{IMAGE}", replace(facts, modules={"nvidia": f"580.2{HOSTILE}"})),
        seen(f"gpu-{LONG}", replace(facts, modules={"nvidia": f"580.{LONG}"})),
        silent(f"javascript:alert(2){IMAGE}"),
    ]
    clusters = (f"lab{IMAGE}`{HOSTILE}",)
    return fleet_of(f"inventories/{HOSTILE}{IMAGE}.py", hosts, clusters, load_catalog(), NOW)


def page(folder: Path, found: FleetStatus) -> str:
    """Address of the page of a fleet, as a file."""
    file = folder / "fleet.html"
    file.write_text(as_html(found, NOW))
    return file.as_uri()


@pytest.fixture
def browser() -> Iterator[Browser]:
    with Browser() as one:
        yield one


def test_the_browser_has_no_network_and_reports_what_a_page_does(
    browser: Browser, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        elsewhere = f"http://127.0.0.1:{server.getsockname()[1]}/"
        assert browser.open(elsewhere) == "net::ERR_INTERNET_DISCONNECTED"
        worse = tmp_path / "worse.html"
        worse.write_text(
            f"<img src={elsewhere}x.png>"
            "<script>console.log('seen'); alert('shown'); none()</script>"
        )
        assert browser.open(worse.as_uri()) is None
        with pytest.raises(BlockingIOError):
            server.accept()
    browser.receive_until(lambda: f"{elsewhere}x.png" in browser.requests())
    words = ("'seen'", "dialog: shown", "exception: Uncaught", "ERR_INTERNET_DISCONNECTED")
    browser.receive_until(lambda: all(word in "\n".join(browser.complaints()) for word in words))


@pytest.mark.parametrize("found", [captured(), hostile(), fleet()], ids=["many", "hostile", "none"])
def test_it_opens_offline_asks_for_nothing_and_executes_nothing(
    browser: Browser, tmp_path: Path, found: FleetStatus
) -> None:
    address = page(tmp_path, found)
    assert browser.open(address) is None
    heading = browser.value("document.querySelector('h1').innerText")
    assert heading == f"GPU fleet {found.inventory}"
    assert browser.value("document.title") == f"gpufleet status: {found.inventory}"
    assert browser.requests() == [address]
    assert browser.complaints() == []


def test_every_chart_is_drawn(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path, captured()))
    charts = browser.value(BARS)
    picture = Image.open(io.BytesIO(browser.picture(whole=True))).convert("RGB")
    titles = ["GPUs by model", "Hosts by driver", "Hosts by distribution", "Hosts by flag"]
    assert [chart["title"] for chart in charts] == titles
    color = rgb(browser.value("getComputedStyle(document.querySelector('rect')).fill"))
    for chart in charts:
        most = max(bar["number"] for bar in chart["bars"])
        widest = max(bar["width"] for bar in chart["bars"])
        assert widest > 200
        for bar in chart["bars"]:
            assert bar["width"] == pytest.approx(widest * bar["number"] / most, abs=1), bar
            assert min(bar["height"], bar["text"]) > 10, bar
            assert bar["top"], f"something is above {bar}"
            middle = (int(bar["x"] + bar["width"] / 2), int(bar["y"] + bar["height"] / 2))
            assert picture.getpixel(middle) == color, bar
    shown = [{bar["label"]: bar["number"] for bar in chart["bars"]} for chart in charts]
    rows = captured().rows
    assert shown[1] == Counter(row.driver or "none" for row in rows)
    assert shown[2] == Counter(row.os or "none" for row in rows)
    assert shown[3] == Counter(flag for row in rows for flag in row.flags)


def test_every_host_and_cluster_is_in_its_table_once(browser: Browser, tmp_path: Path) -> None:
    found = captured()
    browser.open(page(tmp_path, found))
    cells, clusters = browser.value(CELLS)
    assert [row[0] for row in clusters] == ["lab"]
    groups = sorted(
        group_equal_rows(found.rows), key=lambda rows: set(BAD_FLAGS).isdisjoint(rows[0].flags)
    )
    assert [row[0] for row in cells] == [", ".join(fold_names(r.name for r in g)) for g in groups]
    assert [int(row[1]) for row in cells] == [len(group) for group in groups]
    assert sum(int(row[1]) for row in cells) == len(found.rows)
    flags = [row[-1].split() for row in cells]
    assert flags == [list(group[0].flags) or ["-"] for group in groups]


def test_what_hosts_say_stays_text(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path, hostile()))
    kinds = set(browser.value("[...document.querySelectorAll('*')].map(each => each.localName)"))
    assert kinds & {"script", "img", "iframe", "a", "link", "object", "base", "form"} == set()
    names = "[...document.querySelectorAll('*')].flatMap(each => each.getAttributeNames())"
    assert [name for name in browser.value(names) if name.startswith("on")] == []
    cells, clusters = browser.value(CELLS)
    assert [row[0] for row in clusters] == [row.name for row in hostile().clusters]
    assert [row[0] for row in cells] == [row.name for row in hostile().rows]
    assert [row[3] for row in cells[:2]] == [f"580.1{IMAGE}", f"580.2{HOSTILE}"]
    assert cells[0][6] == f"5.15{IMAGE}"


def test_a_finding_opens_and_names_its_hosts(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path, fleet(silent("gpu-42"), seen("gpu-01", healthy()))))
    assert browser.value("document.querySelector('details p').checkVisibility()") is False
    browser.click("summary")
    browser.until("document.querySelector('details p').checkVisibility()")
    assert browser.value("document.querySelector('details p').innerText") == "gpu-42"


@pytest.mark.parametrize("found", [captured(), hostile()], ids=["many", "hostile"])
@pytest.mark.parametrize("width", [360, 1280, 2560])
def test_it_fits_every_screen(tmp_path: Path, found: FleetStatus, width: int) -> None:
    with Browser(width) as browser:
        browser.open(page(tmp_path, found))
        assert browser.value("document.documentElement.scrollWidth") <= width
        beyond = """[...document.querySelectorAll('h1, p, figure, svg, .label, summary, dd')]
            .filter(each => each.getBoundingClientRect().right > innerWidth)
            .map(each => each.outerHTML.slice(0, 99))"""
        assert browser.value(beyond) == []
        cut = """[...document.querySelectorAll('td')].filter(cell => cell.scrollWidth >
            cell.clientWidth + 1).map(cell => cell.innerText)"""
        assert browser.value(cut) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_is_readable_in_light_and_dark(tmp_path: Path, dark: bool) -> None:
    with Browser(dark=dark) as browser:
        browser.open(page(tmp_path, captured()))
        picture = Image.open(io.BytesIO(browser.picture())).convert("RGB")
        ground = picture.getpixel((1, 1))
        assert isinstance(ground, tuple)
        assert (max(ground) < 64) == dark
        for text, color in browser.value(COLORS):
            assert contrast(rgb(color), ground) >= READABLE, text
        fill = rgb(browser.value("getComputedStyle(document.querySelector('rect')).fill"))
        assert contrast(fill, ground) >= SEEN


def rgb(color: str) -> tuple[int, ...]:
    """Red, green and blue of `rgb(1, 2, 3)`."""
    return tuple(map(int, re.findall(r"\d+", color)[:3]))


def contrast(one: Any, other: Any) -> float:
    """WCAG's contrast ratio: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio"""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(color: tuple[int, ...]) -> float:
    parts = [part / 255 for part in color]
    lines = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(share * line for share, line in zip((0.2126, 0.7152, 0.0722), lines, strict=True))
