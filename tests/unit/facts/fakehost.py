"""A host made of files in a folder and fake commands, for the facts command to run on.

The paths in the script are moved under the folder and nothing else is changed, so its globs,
loops and quoting are what runs on a real host.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from gpufleet.facts.script import gather_command

_PATHS = re.compile(r"(?<=[\s\"'=<|])/(?=(?:etc|usr|lib|proc|sys|var|run|opt)\b|dev/nvidia)")


class FakeHost:
    """`root` becomes the host's /. A command without a fake prints nothing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.commands = root / "fakes"
        self.commands.mkdir(parents=True)
        for command in ("systemctl", "modinfo", "dpkg-query", "rpm", "dkms", "uname"):
            self.command(command, "")
        self.file("/proc/sys/kernel/random/boot_id", "6b7cf6a5-0c4e-4d37-9bd0-5b6f9a5d5f10\n")
        self.file("/proc/self/status", "Name:\tsh\nUid:\t0\t0\t0\t0\n")
        self.file("/proc/locks", "")
        self.file("/etc/machine-id", "0123456789abcdef0123456789abcdef\n")
        self.file("/etc/os-release", 'ID=debian\nVERSION_ID="12"\n')
        self.says("uname", "gpu-01 6.1.0-9 x86_64\n")

    def file(self, path: str, content: str | bytes, mode: int = 0o644) -> Path:
        """Write a file of the host, and create its folders."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        target.chmod(mode)
        return target

    def link(self, path: str, target: str) -> None:
        """Create a symbolic link of the host. An absolute target is a path of the host, too."""
        link = self.root / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"{self.root}{target}" if target.startswith("/") else target)

    def device(self, path: str) -> None:
        """A character device."""
        link = self.root / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to("/dev/null")

    def command(self, name: str, script: str) -> None:
        """A fake command: a shell script."""
        target = self.commands / name
        target.write_text(f"#!/bin/sh\n{script}\n")
        target.chmod(0o755)

    def says(self, name: str, output: str) -> None:
        """A fake command that prints `output` for any arguments."""
        self.file(f"/fakes/{name}.out", output)
        self.command(name, f"cat '{self.commands}/{name}.out'")

    def has_packages(self, *names: str, owns: dict[str, str] | None = None) -> None:
        """Make dpkg or rpm list these names and versions ("nvidia-utils 580.1-1") and itself.
        `owns`: path -> the package that owns it."""
        tool = "rpm" if "rhel" in (self.root / "etc/os-release").read_text() else "dpkg-query"
        rows = [f"{tool[:4].rstrip('-')} 1-1", *names]
        self.file(
            "/fakes/rows",
            "".join(f"{name}\tamd64\t{version}\tinstall ok installed\n"
                    for name, version in (row.split() for row in rows)),
        )  # fmt: skip
        known = "".join(
            f"{self.root}{path}) echo {name if tool == 'rpm' else name + ':amd64: $item'} ;;\n"
            for path, name in (owns or {}).items()
        )
        no = {
            "rpm": 'echo "file $item is not owned by any package"',
            "dpkg-query": 'echo "dpkg-query: no path found matching pattern $item" >&2',
        }[tool]
        self.command(
            tool,
            f"echo $* >>'{self.commands}/asked'\n"
            f"case $1 in -S | -qf) ;; *) cat '{self.commands}/rows'; exit ;; esac\n"
            f"for item; do case $item in -* | %*) ;;\n{known}*) {no} ;; esac; done",
        )

    def gather(
        self,
        shell: tuple[str, ...],
        paths: tuple[str, ...] = (),
        ports: tuple[int, ...] = (),
        *,
        health: bool = False,
    ) -> list[str]:
        """The lines that the script prints, with the paths of the host."""
        script = _PATHS.sub(f"{self.root}/", gather_command(paths, ports, health=health))
        done = subprocess.run(
            [*shell, "-c", script],
            env={"PATH": f"{self.commands}:{os.environ['PATH']}"},
            capture_output=True,
            check=True,
        )
        assert done.stderr == b""
        return done.stdout.decode("ascii").replace(str(self.root), "").splitlines()
