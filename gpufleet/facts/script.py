"""The command that prints the facts of a host: the sections, joined."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from gpufleet.core.distributions import load_families
from gpufleet.facts.sections import ON_REQUEST, SECTIONS
from gpufleet.facts.sections.drivers import LIBRARY_PACKAGES, MODULE_PACKAGES
from gpufleet.facts.sections.readings import element_names

MAX_ARGUMENT = 128 * 1024  # MAX_ARG_STRLEN of Linux: the longest argument of a command
LINE_END = "\36"  # separates lines in the output, which is one line for pyinfra
CAPTURE_MARK = "@@"  # in output stored in a file; each run has a random one


# Limited, because this machine keeps the output in memory. Output that lacks its end is refused.
SEND = r"gather | tr '\12\0-\10\13-\37\177-\377' '\36[?*]' | head -c 67108864"


@cache
def _script(health: bool) -> str:
    """The sections in one function, without comment lines and leading blanks, which saves a third
    of the upload."""
    folder = files("gpufleet.facts.sections")

    def code(name: str) -> str:
        text = folder.joinpath(f"{name}.sh").read_text("utf-8")
        lines = (line.strip() for line in text.splitlines())
        return "\n".join(line for line in lines if line and not line.startswith("#"))

    names = [*SECTIONS[:-1], *(ON_REQUEST if health else ()), SECTIONS[-1]]
    sections = "\n".join(f"section {name}\n{code(name)}" for name in names)
    return f'{code("begin")}\ngather() {{\n{sections}\nsay "$mark"\n}}\n{SEND}'


@cache
def _words() -> str:
    """Maps words in os-release to the package format: `dpkg=debian rpm=rhel`."""
    tools = {"deb": "dpkg", "rpm": "rpm"}
    families = load_families()
    return " ".join(f"{tools[f.packaging]}={word}" for f in families for word in f.words)


def gather_command(
    paths: Sequence[str] = (),
    ports: Sequence[int] = (),
    *,
    mark: str = CAPTURE_MARK,
    health: bool = False,
) -> str:
    """The command that gathers the facts and reads the files `paths` (absolute).

    `mark` separates the sections; parse_node_facts needs the same mark. `ports` are TCP ports with
    listeners to report. `health`: gather the readings and errors of the GPUs, too, which takes
    longer.

    Raises ValueError for a path that is not absolute or holds a line break, and if the command is
    longer than the kernel accepts.
    """
    for path in paths:
        if not path.startswith("/") or "\n" in path:
            raise ValueError(f"not an absolute path on one line: {path!r}")
    listed = shlex.quote("\n".join(paths))
    asked = shlex.quote("|".join(f"{port:04X}" for port in ports))
    variables = f"mark={mark}\nconfigs={listed}\nports={asked}"
    variables += f"\nwords={shlex.quote(_words())}"
    variables += f"\nmls='{LIBRARY_PACKAGES}'\nkos='{MODULE_PACKAGES}'"
    variables += f"\nreadings='{element_names()}'" if health else ""
    command = f"{variables}\n{_script(health)}"
    if len(shlex.quote(command)) >= MAX_ARGUMENT:
        raise ValueError(f"{len(paths)} paths are more than fit into one command")
    return command
