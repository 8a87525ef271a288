"""Write docs/pictures/NAME-COLUMNS.svg: terminal output of commands on sandbox hosts.

`make terminal-pictures` runs it. It starts hosts in a separate sandbox and removes them.
"""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.text import Text

from gpufleet_sandbox import Sandbox
from gpufleet_sandbox.inventory import group_data, nodes

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs/pictures"
GPUFLEET = Path(sys.executable).with_name("gpufleet")
HOSTS = ("ubuntu2204", "debian12", "nogpu")
COLUMNS = (80, 120)
BLOCK = 65536  # bytes
CRITICAL = 2  # exit status of the doctor
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # from a server: any monospace font does


def printed(words: Sequence[str], columns: int, status: int = 0) -> str:
    """The output of a command on a terminal with this number of columns, without progress lines.
    `status`: its exit status."""
    reader, writer = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color"}
    environment.pop("CI", None)
    with subprocess.Popen(
        [str(GPUFLEET), *words], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
        stdout=writer, stderr=subprocess.DEVNULL,
    ) as run:  # fmt: skip
        os.close(writer)
        found = b""
        while True:
            try:
                block = os.read(reader, BLOCK)
            except OSError:  # the other end is closed
                break
            found += block
    os.close(reader)
    if run.returncode != status:
        raise SystemExit(
            f"gpufleet {words[0]} ended with status {run.returncode}:\n{found.decode()}"
        )
    return found.decode().replace("\r\n", "\n")


def draw(name: str, title: str, text: str, columns: int) -> None:
    """Write the picture of a terminal with that text."""
    console = Console(width=columns, record=True, file=io.StringIO())
    console.print(Text.from_ansi(text.rstrip("\n")))
    picture = console.export_svg(title=title, unique_id=name)
    (PICTURES / f"{name}-{columns}.svg").write_text(FONTS.sub("", picture))


@contextmanager
def fleet(wanted: Sequence[str]) -> Iterator[tuple[Sandbox, Path]]:
    """A sandbox of those hosts, and a folder with `inventories/prod.py` that names them."""
    with TemporaryDirectory() as folder:
        box = Sandbox("pictures")
        try:
            box.up(list(wanted))
            found = dict(nodes(box.name))
            hosts = [(name, found[name]) for name in wanted]
            inventory = Path(folder, "inventories/prod.py")
            inventory.parent.mkdir()
            inventory.write_text(f"gpu_nodes = ({hosts!r}, {group_data()!r})\n")
            yield box, Path(folder)
        finally:
            box.down()


def draw_command(words: Sequence[str], inventory: Path, columns: int, status: int = 0) -> None:
    """Write the picture of a command, VERB OPTION…, on an inventory."""
    verb, *options = words
    title = " ".join(("gpufleet", verb, "inventories/prod.py", *options))
    text = printed([verb, str(inventory), *options], columns, status)
    text = text.replace(str(inventory), "inventories/prod.py").replace(str(Path.home()), "~")
    draw(verb, title, text, columns)


def main() -> None:
    with fleet(HOSTS) as (box, folder):
        inventory = folder / "inventories/prod.py"
        for words in (
            ("plan",), ("apply", "--yes"), ("status",), ("upgrade", "--branch", "595", "--plan"),
        ):  # fmt: skip
            for columns in COLUMNS:
                if words[0] == "apply":
                    for name in HOSTS:
                        box.host(name).reset()
                draw_command(words, inventory, columns)
        with box.host(HOSTS[0]).fault("gpu-xid"):
            for columns in COLUMNS:
                draw_command(("doctor", "--limit", HOSTS[0]), inventory, columns, CRITICAL)


if __name__ == "__main__":
    main()
