"""`gpufleet init`: create a user's own repository, in which every command works."""

from __future__ import annotations

import ast
import shlex
import sys
from contextlib import suppress
from pathlib import Path

import click

from gpufleet import __version__
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.names import count_noun
from gpufleet.core.paths import shipped_path

INIT_TEMPLATES = {  # path in the new folder -> path below templates/init
    ".gitignore": "gitignore",
    "README.md": "README.md",
    "checks/test_site.py": "checks/test_site.py",
    "ci/github-actions.yml": "ci/github-actions.yml",
    "inventories/prod.py": "inventories/prod.py",
}
DEPLOY_TEXT = '''\
"""{title}"""

from gpufleet.run.include import include

include("{name}")
'''


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Create a repository for a fleet in DIR.

    It holds an inventory, deploys, checks and a CI sample. DIR must not exist yet, or be empty.
    """
    if not str(folder).isprintable():
        raise click.UsageError("DIR has characters that cannot be printed. Name another folder.")
    path = folder
    try:
        if folder.is_dir() and any(folder.iterdir()):
            raise click.UsageError(
                f"{folder} is not empty, and its files would be overwritten. "
                "Name an empty folder or one that does not exist."
            )
        files = repository_files()
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        place, why = error.filename or path, error.strerror or error
        click.echo(f"Error: cannot write {place}: {why}", err=True)
        with suppress(OSError):  # there is no folder
            if any(folder.iterdir()):
                click.echo(f"{folder} is incomplete. Delete it, then run again.", err=True)
        sys.exit(ExitStatus.FAILED)
    click.echo(f"Created {folder} with {count_noun(len(files), 'file')}. Next:")
    click.echo("  edit inventories/prod.py: your hosts")
    place = f"./{folder}" if str(folder).startswith("-") else str(folder)
    click.echo(f"  cd {shlex.quote(place)} && gpufleet plan inventories/prod.py")


def repository_files() -> dict[str, str]:
    """The files of the new folder: path -> text."""
    files = {name: (shipped_path("templates") / "init" / source).read_text(encoding="utf-8")
             for name, source in INIT_TEMPLATES.items()}  # fmt: skip
    files["config.py"] = shipped_path("config.py").read_text(encoding="utf-8")
    everyone = shipped_path("inventories") / "group_data/all.py"
    files["inventories/group_data/all.py"] = everyone.read_text(encoding="utf-8")
    files["requirements.txt"] = f"gpufleet=={__version__}\n"
    for deploy in sorted(shipped_path("deploys").glob("*.py")):
        title = ast.get_docstring(ast.parse(deploy.read_text(encoding="utf-8")))
        files[f"deploys/{deploy.name}"] = DEPLOY_TEXT.format(title=title, name=deploy.stem)
    return files
