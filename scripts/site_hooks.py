"""Hooks of mkdocs: pages and files of the repository that are outside of docs/, and their links.

Links in documents are paths in the repository, so that they work there too. On the site, the
READMEs of roles are pages, and other linked files are copied.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")
DRAWING = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)
ROW = re.compile(r"^\|.*$", re.MULTILINE)
CODE = re.compile(r"`[^`]*`")
ARROW = re.compile(r"^ *(\w+) --> (\w+)$", re.MULTILINE)
FILES = "files"  # folder of the site with copies of files
PAGES = {  # file of the repository -> page of the site
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/README.md": "how-to/examples.md",
    "README.md": "readme.md",
    "SECURITY.md": "security-policy.md",
    "roles/README.md": "reference/roles/index.md",
    "sandbox/README.md": "how-to/gpufleet-sandbox.md",
    **{
        path.relative_to(ROOT).as_posix(): f"reference/roles/{path.parent.name}.md"
        for path in sorted(ROOT.glob("roles/*/README.md"))
    },
}
LISTS = {"docs/runbooks": "runbooks/index.md"}  # a folder of pages -> the page that lists them
SOURCES = {page: source for source, page in PAGES.items()}
WIDE = ("reference/keys.md",)  # with too many headings for a column


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Folders in the navigation stand for their pages."""
    config.nav = _expanded(config.nav)
    return config


def _expanded(nav: Any) -> Any:
    if isinstance(nav, list):
        return [_expanded(each) for each in nav]
    if isinstance(nav, dict):
        return {title: _expanded(each) for title, each in nav.items()}
    if not str(nav).endswith("/"):
        return nav
    pages = {*PAGES.values(), *LISTS.values()}
    pages |= {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob(f"docs/{nav}*.md")}
    inside = sorted(page for page in pages if page.startswith(nav))
    return sorted(inside, key=lambda page: not page.endswith("index.md"))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and files from outside of docs/."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    for folder, page in LISTS.items():
        files.append(File.generated(config, page, content=listing(folder)))
    for path in sorted(linked_files()):
        copy = File.generated(config, f"{FILES}/{path}", abs_src_path=str(ROOT / path))
        files.append(copy)
    return files


def listing(folder: str) -> str:
    """A page that names the pages of a folder."""
    names = sorted(path.name for path in (ROOT / folder).glob("*.md"))
    return "# Runbooks\n\nOne page for each alert.\n\n" + "".join(
        f"- [{name.removesuffix('.md')}]({name})\n" for name in names
    )


def linked_files() -> set[str]:
    """Files of the repository, from its root, that pages link to and that are no pages."""
    found = set()
    for source in sources():
        for _, target, _ in LINK.findall((ROOT / source).read_text()):
            path = target_of(source, target)
            if path and page_of(path) is None and not path.startswith("docs/"):
                found |= {path} if (ROOT / path).is_file() else set()
    return found


def sources() -> Iterator[str]:
    """Every document, from the repository's root."""
    yield from PAGES
    yield from (path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("docs/**/*.md")))


def target_of(source: str, target: str) -> str | None:
    """The target of a document's link as a path from the repository's root, or None for another
    site."""
    if re.match(r"[a-z]+:|#|/", target):
        return None
    path = target.partition("#")[0]
    return os.path.normpath(os.path.join(os.path.dirname(source), path))


def page_of(path: str) -> str | None:
    """The page of the site that has a file of the repository, or lists a folder."""
    if path in PAGES or path in LISTS:
        return PAGES.get(path) or LISTS[path]
    inside = path.removeprefix("docs/")
    return inside if inside != path and path.endswith((".md", ".png", ".svg")) else None


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Lead links to their targets on the site, show | as such, draw nothing by a script."""
    uri = page.file.src_uri
    source = SOURCES.get(uri, f"docs/{uri}")
    if uri in WIDE:
        page.meta["hide"] = ["toc"]

    def relinked(match: re.Match[str]) -> str:
        path = target_of(source, match[2])
        if path is None or uri in LISTS.values():
            return match[0]
        if page_of(path) is None and (ROOT / path).is_dir():  # the site has no page of it
            return match[1].removeprefix("[").removesuffix("](")
        fragment = match[2].partition("#")[1] + match[2].partition("#")[2]
        place = page_of(path) or (f"{FILES}/{path}" if (ROOT / path).is_file() else path)
        return (
            f"{match[1]}{os.path.relpath(place, os.path.dirname(uri) or '.')}{fragment}{match[3]}"
        )

    return DRAWING.sub(_table, ROW.sub(_unescaped, LINK.sub(relinked, markdown)))


def _unescaped(row: re.Match[str]) -> str:
    """A row of a table: GitHub needs a backslash before | in code, and here it would be shown."""
    return CODE.sub(lambda code: code[0].replace(r"\|", "|"), row[0])


def _table(drawing: re.Match[str]) -> str:
    """The arrows of a drawing as rows: mermaid's program is not part of the site."""
    below: dict[str, list[str]] = {}
    for upper, lower in ARROW.findall(drawing[1]):
        below.setdefault(upper, []).append(f"`{lower}`")
    rows = [f"| `{upper}` | {', '.join(lower)} |" for upper, lower in below.items()]
    return "\n".join(["| room | imports |", "|---|---|", *rows, ""])
