"""The documentation site in a browser without a network: from files, and served."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.browser import SERVED, Browser

pytestmark = [
    pytest.mark.extended,
    pytest.mark.claim(
        "The site works in a browser without a network: search, pictures, links.",
        level=7,
    ),
]

ROOT = Path(__file__).resolve().parents[2]
START = f"http://{SERVED}/index.html"
PICTURES = """[...document.images].map(each => [each.getAttribute('src'), each.naturalWidth,
    each.alt.length])"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = [Path(sys.executable).with_name("mkdocs"), "build", "--strict", "--site-dir", folder]
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_served_site_needs_nothing_else_and_finds_words(site: Path, dark: bool) -> None:
    with Browser(dark=dark, site=site) as browser:
        assert browser.open(START) is None
        browser.until("document.querySelector('input.md-search__input')?.offsetWidth > 0")
        browser.click("input.md-search__input")
        browser.ask("Input.insertText", text="GF112")
        browser.until("document.querySelector('.md-search-result a[href*=\"#gf112\"]')")
        scheme = browser.value("document.body.dataset.mdColorScheme")
        assert scheme == ("slate" if dark else "default")
        assert [each for each in browser.requests() if not local(each)] == []
        assert browser.complaints() == []


def test_a_table_shows_commands_as_they_are_typed(site: Path) -> None:
    with Browser(site=site) as browser:
        browser.open(f"http://{SERVED}/how-to/status.html")
        codes = browser.value("[...document.querySelectorAll('td code')].map(c => c.innerText)")
        assert "--group-by model|driver|os|kernel|group" in codes
        heights = """[...document.querySelectorAll('td:first-child code')].filter(
            code => !/[ |-]/.test(code.innerText) && code.getClientRects().length > 1)
            .map(code => code.innerText)"""
        assert browser.value(heights) == [], "a word is broken"


@pytest.mark.parametrize("page", ["index", "readme", "how-to/status", "how-to/output"])
@pytest.mark.parametrize("width", [360, 1280])
def test_pages_and_their_pictures_fit_the_screen(site: Path, page: str, width: int) -> None:
    with Browser(width, site=site) as browser:
        assert browser.open(f"http://{SERVED}/{page}.html") is None
        assert browser.value("document.documentElement.scrollWidth") <= width
        browser.until("[...document.images].every(each => each.complete)")
        bad = [each for each in browser.value(PICTURES) if not (each[1] and each[2])]
        assert bad == [], "a picture is missing, or has no text beside it"


def test_links_work_where_the_site_is_opened_as_files(site: Path) -> None:
    with Browser() as browser:
        assert browser.open((site / "index.html").as_uri()) is None
        browser.follow("article a[href='how-to/status.html']")
        assert browser.value("document.querySelector('h1').innerText").startswith(
            "The state of a fleet"
        )
        assert [
            each for each in browser.requests() if not each.startswith(("file:", "data:"))
        ] == []


def local(address: str) -> bool:
    return address.startswith((f"http://{SERVED}/", "data:"))
