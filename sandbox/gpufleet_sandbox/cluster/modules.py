"""A Go module of our own that requires others, in which their programs are built."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

from gpufleet.core.visible import Lines
from gpufleet_sandbox.errors import SandboxError, kinds
from gpufleet_sandbox.golang import COMPILER
from gpufleet_sandbox.process import leave, own_group, run

DOWNLOADS_AT_ONCE = 6
BUILD_SECONDS = 3600
SAY_EVERY = 15.0  # seconds
LAST = ("nice", "-n", "19")  # a build has minutes of work for every processor: the rest goes first
TOOLS = """\
//go:build tools

package tools

import (
{imports}
)
"""


@dataclass(frozen=True, slots=True)
class OwnModule:
    """The module in `folder`; `go` is the go command, `environment` its variables."""

    go: Path
    folder: Path
    environment: Mapping[str, str]
    progress: Callable[[str], None]

    def create(self, packages: Sequence[str], require: str, replace: Mapping[str, str]) -> None:
        """Write go.mod and the imports of `packages`, and let go find every version.

        `require` is module@version; `replace` is module -> path, or module@version.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "go.mod").unlink(missing_ok=True)
        self.run("mod", "init", "example.org/sandbox")
        imports = "\n".join(f'\t_ "{package}"' for package in packages)
        (self.folder / "tools.go").write_text(TOOLS.format(imports=imports))
        self.edit(f"-require={require}", *(f"-replace={old}={new}" for old, new in replace.items()))
        # -e: test packages of dependencies that nobody serves any more are no obstacle
        self.run("mod", "tidy", "-e")

    def edit(self, *edits: str) -> None:
        """Change go.mod."""
        self.run("mod", "edit", *edits)

    def build(
        self, what: str, packages: Mapping[str, str], target: Path, flags: str, tags: str = ""
    ) -> None:
        """Build programs in one go: name -> package, each whole or not at all in `target`.

        `flags` are the linker's; `what` is how progress calls them.
        """
        made = self.folder / "made"
        made.mkdir(exist_ok=True)
        # one alone is named by us: go calls a package that ends in /v3 by what is before that
        output = f"{made}/" if len(packages) > 1 else str(made / next(iter(packages)))
        words = ["build", "-v", "-gcflags", COMPILER, "-ldflags", flags, "-tags", tags]
        self._watch(what, [*words, "-o", output, *packages.values()], self._count(packages))
        target.mkdir(parents=True, exist_ok=True)
        for name in packages:
            (made / name).replace(target / name)

    def download(self, module: str, version: str) -> dict[str, Any]:
        """What `go mod download -json` says of a module; with `Error` where it cannot be had."""
        done = self.run("mod", "download", "-json", f"{module}@{version}", check=False)
        answer: dict[str, Any] = json.loads(done or '{"Error": "go says nothing"}')
        return answer

    def first_served(self, wanted: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Module -> the first of its versions that the proxy serves; those with none are left out.

        Such a module can only be one that the programs do not need: go says so otherwise.
        """

        def first(item: tuple[str, Sequence[str]]) -> tuple[str, str]:
            module, candidates = item
            served = (one for one in candidates if "Error" not in self.download(module, one))
            return module, next(served, "")

        with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
            found = dict(pool.map(first, wanted.items()))
        return {module: version for module, version in found.items() if version}

    def folder_of(self, module: str) -> Path | None:
        """Where go has unpacked a module of this build; None when it is not part of it."""
        found = self.run("list", "-m", "-f", "{{.Dir}}", module, check=False).strip()
        return Path(found) if found else None

    def run(self, *words: str, check: bool = True) -> str:
        """Standard output of a go command in the folder; SandboxError where it fails."""
        self.folder.mkdir(parents=True, exist_ok=True)
        done = run(
            [*LAST, self.go, *words], check=check, env=self.environment, cwd=self.folder,
            timeout=BUILD_SECONDS, group=True,
        )  # fmt: skip
        return done.stdout

    def _count(self, packages: Mapping[str, str]) -> int:
        """How many packages the programs consist of."""
        return len(self.run("list", "-deps", *packages.values()).split())

    def _watch(self, what: str, words: Sequence[str], total: int) -> None:
        """Run a build, which names each package that it compiles, and say how far it is."""
        began = said = time.monotonic()
        last: deque[str] = deque(maxlen=20)
        with own_group(
            [*LAST, str(self.go), *words], cwd=self.folder, env=dict(self.environment),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            assert process.stderr
            watchdog = Timer(BUILD_SECONDS, os.killpg, (process.pid, signal.SIGKILL))
            watchdog.start()
            try:
                for number, line in enumerate(process.stderr):
                    last.append(line)
                    if time.monotonic() - said >= SAY_EVERY:
                        said = time.monotonic()
                        self.progress(progress_line(what, number, total, said - began))
                leave(process)
            finally:
                watchdog.cancel()
        if process.returncode:
            raise SandboxError(
                kinds.COMMAND_FAILED(
                    command=f"go build {what}",
                    status=process.returncode,
                    output=Lines("".join(last)),
                )
            )


def progress_line(what: str, done: int, total: int, seconds: float) -> str:
    """`building etcd: 40 % of its 900 packages, about 2 min left`. Pure.

    The last twentieth stands for linking, in which no package is named.
    """
    share = min(0.95, 0.95 * done / max(total, 1))
    left = seconds / share - seconds if share else 0
    rest = f", about {max(1, round(left / 60))} min left" if share > 0.05 else ""
    return f"building {what}: {share:.0%} of {total} packages{rest}"
