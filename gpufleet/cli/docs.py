"""`gpufleet docs`: the documentation that ships with this version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import click

from gpufleet.core.paths import shipped_path

MAX_PAGES = 5  # that a message names


@click.command()
@click.argument("page", required=False)
def docs(page: str | None) -> None:
    """Show a page of the documentation, such as upgrade.

    Without PAGE it lists all pages. For another word, such as proxy, it lists pages with this word.

    Exit status: 0 the page exists; 2 usage error.
    """
    folder = shipped_path("docs")
    # guides first: of two pages with the same name, the guide is shown
    paths = sorted(folder.rglob("*.md"), key=lambda path: (path.parent.name != "how-to", path))
    pages = {path.relative_to(folder).with_suffix("").as_posix(): path for path in paths}
    if page is None:
        click.echo("\n".join(f"{name}: {_title(path)}" for name, path in pages.items()))
        return
    found = [path for name, path in pages.items() if page in (name, _word(path))]
    if not found:
        raise click.UsageError(f"No page is called {page!r}. {_pages_about(page, pages)}")
    click.echo_via_pager(found[0].read_text("utf-8"))


def _pages_about(text: str, pages: Mapping[str, Path]) -> str:
    """The pages that have a text most often, as a sentence."""
    counts = Counter({
        name: path.read_text("utf-8").lower().count(text.lower()) for name, path in pages.items()
    })  # fmt: skip
    names = [name for name, count in counts.most_common(MAX_PAGES) if count]
    return f"Pages that name it: {', '.join(names)}." if names else "`gpufleet docs` lists them."


def _word(path: Path) -> str:
    """The word for a page: "upgrade", and "findings" for reference/findings/README.md."""
    return path.parent.name if path.stem == "README" else path.stem


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as lines:
        return next((line[2:].strip() for line in lines if line.startswith("# ")), "")
