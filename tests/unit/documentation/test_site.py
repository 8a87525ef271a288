"""`make docs-site`: strict, with checked links, and nothing that a browser loads from elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from documents import ROOT, documents

from scripts.finding_codes import codes
from scripts.site_hooks import page_of, target_of

OUTSIDE = re.compile(r"<(?:link|script|img|iframe|source)\b[^>]*(?:href|src)=\"?https?:", re.I)
STYLE = re.compile(r"@import\s|url\(\s*[\"']?https?:")
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
PAGES = {"README.md": "readme.md", "CONTRIBUTING.md": "contributing.md"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as in the Makefile, without a network if unshare works on this machine."""
    folder = tmp_path_factory.mktemp("site")
    words = [Path(sys.executable).with_name("mkdocs"), "build", "--strict", "--site-dir", folder]
    unshare = ["unshare", "--map-root-user", "--net"]
    alone = (
        shutil.which("unshare") and not subprocess.run([*unshare, "true"], check=False).returncode
    )
    done = subprocess.run(
        [*(unshare if alone else ()), *words],
        cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.claim(
    "The site of the documentation is built without a network and loads nothing from elsewhere.",
    level=1,
)
@pytest.mark.extended
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 80
    assert [page.name for page in pages if OUTSIDE.search(page.read_text())] == []
    styles = sorted(site.rglob("*.css"))
    assert styles
    assert [style.name for style in styles if STYLE.search(style.read_text())] == []


@pytest.mark.extended
def test_every_document_is_a_page_and_every_finding_has_its_place(site: Path) -> None:
    for page in documents():
        inside = PAGES.get(page) or page.removeprefix("docs/").replace("README", "index")
        if not inside.startswith(("roles/", "sandbox/")):
            assert (site / inside).with_suffix(".html").is_file(), page
    for code, room in codes().items():
        page = (site / f"reference/findings/{room}.html").read_text()
        assert f'id="{code.lower()}"' in page


@pytest.mark.extended
def test_files_of_the_repository_are_beside_the_pages(site: Path) -> None:
    example = "templates/examples/vector-add.yaml"
    copied = (site / "files" / example).read_text()
    assert copied == (ROOT / example).read_text()
    assert f"../files/{example}" in (site / "how-to/gpu-cluster.html").read_text()


def test_every_picture_is_a_file_of_the_site_and_has_a_text_beside_it() -> None:
    found = [
        (source, text, target_of(source, target))
        for source, markdown in documents().items()
        for text, target in PICTURE.findall(markdown)
    ]
    assert len(found) > 5
    for source, text, path in found:
        assert text, f"{source}: {path}"
        assert path is not None
        assert (ROOT / path).is_file(), f"{source}: {path}"
        assert page_of(path) == path.removeprefix("docs/"), f"{source}: {path}"


def test_loading_from_elsewhere_is_seen() -> None:
    assert OUTSIDE.search('<script src="https://unpkg.com/mermaid"></script>')
    assert OUTSIDE.search("<link rel=stylesheet href=http://fonts.example.com/a.css>")
    assert not OUTSIDE.search('<a href="https://example.com">')
    assert STYLE.search("a{b:url(https://example.com/c.woff)}")
