"""Every deploy, command and target that a message, README, page or runbook names exists."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from gpufleet.cli import main
from gpufleet.core.findings import KNOWN_KINDS
from scripts.finding_codes import finding_modules

pytestmark = pytest.mark.claim(
    "Every command, option and target that a message or page names exists.",
    level=1,
)

ROOT = Path(__file__).resolve().parents[2]
FILES = re.compile(r"\b(?:deploys|inventories)/[\w/-]+\.py\b")
INLINE = re.compile(r"`([^`\n]+)`")
MAKE = re.compile(r"^make ([a-z][a-z-]*)")
COMMAND = re.compile(r"(?:^|[\s(=]|\bbin/)(gpufleet|pyinfra) ([^|;&#()…]*)")
OPTION = re.compile(r"`(--[a-z][a-z-]*)[^`]*`")
USERS_OWN = ("inventories/lab.py", "inventories/mine.py")  # names of examples
OF_OTHERS = {  # options of other programs, which the same sentence names
    "--config", "--config-file", "--extra-index-url", "--force", "--validate",
}  # fmt: skip


@cache
def texts() -> dict[str, str]:
    """Every text that users read, by its path or by the code of its finding."""
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("roles/*/README.md")]
    pages += [*ROOT.glob("inventories/**/*.py"), *ROOT.glob("gpufleet/*/data/*.yaml")]
    pages += [*ROOT.glob("deploys/*.py"), *ROOT.glob("templates/init/**/*.*")]
    found = {str(page.relative_to(ROOT)): page.read_text() for page in sorted(pages)}
    finding_modules()
    return found | {code: f"{kind.message}\n{kind.remedy}" for code, kind in KNOWN_KINDS.items()}


def code(text: str, blocks: bool = True) -> Iterator[str]:
    """Inline code, and the lines of code blocks unless `blocks` is False."""
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif blocks and (fenced or line.startswith("    ")):
            yield line.strip()
        else:
            yield from INLINE.findall(line)
    yield from re.findall(r"with: (gpufleet .*)", text)


@cache
def pyinfra() -> click.Command:
    """Options of the pyinfra command, from its help: importing it would patch this process."""
    words = [Path(sys.executable).with_name("pyinfra"), "--help"]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^ +(?:-\w+, )?(--[a-z-]+)", text, re.MULTILINE)
    assert "--limit" in found
    return click.Command("pyinfra", params=[click.Option([option]) for option in found])


def program(name: str) -> click.Command:
    return main if name == "gpufleet" else pyinfra()


def wrong_words(name: str, arguments: str) -> list[str]:
    """Subcommands and options that the program of that name does not have."""
    try:
        words = shlex.split(arguments.replace("[", " ").replace("]", " "))
    except ValueError:
        words = arguments.split()
    command, wrong = program(name), []
    for word in words:
        if isinstance(command, click.Group) and re.fullmatch("[a-z][a-z-]*", word):
            context = click.Context(command)
            found = command.get_command(context, word)
            if found is None:
                return [f"{name} {word}"]
            command = found
        elif word == "--":
            break
        elif re.match("--[a-z]", word):
            if isinstance(command, click.Group) and (default := getattr(command, "default", "")):
                command = command.commands[default]
            options = {option for found in command.params for option in found.opts}
            options |= {option for found in command.params for option in found.secondary_opts}
            if word.split("=")[0] not in options | {"--help", "--version"}:
                wrong.append(f"{name} … {command.name} {word}")
    return wrong


def test_what_a_text_names_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    wrong = {name: list(not_there(name, text, targets)) for name, text in texts().items()}
    assert {name: found for name, found in wrong.items() if found} == {}
    assert wrong


def not_there(name: str, text: str, targets: set[str]) -> Iterator[str]:
    """Files, targets of make, commands and options that a text names and that do not exist."""
    named = [path for path in FILES.findall(text) if path not in USERS_OWN]
    yield from (path for path in named if not (ROOT / path).is_file())
    for snippet in code(text, blocks=not name.endswith((".py", ".yaml"))):
        if (make := MAKE.match(snippet)) and make[1] not in targets:
            yield f"make {make[1]}"
        for command, arguments in COMMAND.findall(snippet):
            yield from wrong_words(command, arguments)


def options(command: click.Command) -> set[str]:
    """The options of a command and of those below it."""
    found = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
    if isinstance(command, click.Group):
        context = click.Context(command)
        below = (command.get_command(context, name) for name in command.list_commands(context))
        found |= {option for each in below if each for option in options(each)}
    return found


def test_an_option_that_a_page_names_alone_is_there() -> None:
    pages = [text for name, text in texts().items() if name.endswith(".md")]
    named = {option for text in pages for option in OPTION.findall(text)}
    assert len(named) > 20
    known = options(main) | options(pyinfra()) | {"--help", "--version"}
    assert named - known - OF_OTHERS == set()
    assert named >= OF_OTHERS


def test_the_check_sees_what_is_not_there() -> None:
    assert FILES.findall("run deploys/not_there.py again") == ["deploys/not_there.py"]
    assert list(code("see `make nothing`\n\n    gpufleet up\n")) == ["make nothing", "gpufleet up"]
    assert wrong_words("gpufleet", "downgrade inventories/prod.py") == ["gpufleet downgrade"]
    assert wrong_words("gpufleet", "doctor INVENTORY --fleet") == ["gpufleet … doctor --fleet"]
    assert COMMAND.findall(".venv/bin/gpufleet up x") == [("gpufleet", "up x")]
    assert wrong_words("gpufleet", "catalog charts --kubernetes 1.18") == []
    assert wrong_words("pyinfra", "-y prod.py a.py --limt x") == ["pyinfra … pyinfra --limt"]
