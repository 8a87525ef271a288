"""The HTML page is valid and loads no other file, and text from hosts cannot become markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from gpufleet.status.models import FleetStatus
from gpufleet.status.page import as_html
from tests.unit.status.fleets import HOSTILE, NOW, bare, fleet, healthy, hostile, seen, silent

VOID = {"meta", "link", "br", "hr", "img", "input"}
LOADING = {"script", "link", "img", "iframe", "object", "embed", "base", "form", "audio", "video",
           "source", "image", "use", "foreignobject", "a"}  # fmt: skip


class Page(HTMLParser):
    """Collects open tags, wrongly closed tags, attributes and texts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if len(dict(attrs)) != len(attrs):
            self.wrong.append(f"{tag} has an attribute twice")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def within(self, tag: str) -> str:
        return " ".join(data for where, data in self.texts if where == tag)


def many() -> FleetStatus:
    hosts = [seen(f"gpu-{n:02}", healthy()) for n in range(1, 41)]
    return fleet(*hosts, seen("gpu-41", bare()), silent("gpu-42"), clusters=("lab",))


@pytest.mark.parametrize("found", [many(), hostile(), fleet()], ids=["many", "hostile", "none"])
def test_it_is_well_formed_and_loads_nothing(found: FleetStatus) -> None:
    text = as_html(found, NOW)
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>\n")
    assert (page.wrong, page.open) == ([], [])
    assert {tag for tag, _ in page.tags} & LOADING == set()
    named = [name for _, attributes in page.tags for name in attributes]
    assert {"src", "href", "srcset", "style", "action", "xlink:href"} & set(named) == set()
    assert [name for name in named if name.startswith("on")] == []
    assert re.findall(r"url\(|@import|https?://|//[a-z]", page.within("style")) == []


def test_a_policy_forbids_what_the_page_does_not_need() -> None:
    metas = [attributes for tag, attributes in Page(as_html(many(), NOW)).tags if tag == "meta"]
    (policy,) = [m["content"] for m in metas if m.get("http-equiv") == "Content-Security-Policy"]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_what_hosts_say_is_text() -> None:
    text = as_html(hostile(), NOW)
    page = Page(text)
    assert "script" not in {tag for tag, _ in page.tags}
    assert "<script" not in text
    assert page.within("title").count("alert") >= 1, "it is shown"
    assert HOSTILE in page.within("td")
    assert not any(not letter.isprintable() and letter != "\n" for letter in text)


def test_it_has_hosts_findings_flags_and_charts() -> None:
    page = Page(as_html(many(), NOW))
    assert "gpu-[01-40]" in page.within("td")
    assert "GF005" in page.within("code")
    assert "unreachable" in page.within("dt")
    captions = [data for where, data in page.texts if where == "figcaption"]
    assert captions == ["GPUs by model", "Hosts by driver", "Hosts by distribution",
                        "Hosts by flag"]  # fmt: skip
    widths = [attributes["width"] for tag, attributes in page.tags if tag == "rect"]
    assert widths == ["100.0%", "100.0%", "5.0%", "100.0%", "2.4%", "2.4%", "100.0%", "2.4%"]
    assert "A100 SXM4 80GB: 41" in page.within("title")


def test_hosts_that_need_someone_are_first() -> None:
    rows = Page(as_html(fleet(seen("good", healthy()), silent("bad")), NOW)).within("td")
    assert rows.index("bad") < rows.index("good")


def test_a_chart_has_few_bars() -> None:
    hosts = [seen(f"gpu-{n}", bare(modules={"nvidia": f"580.{n}"})) for n in range(30)]
    assert "others: 19" in Page(as_html(fleet(*hosts), NOW)).within("title")
