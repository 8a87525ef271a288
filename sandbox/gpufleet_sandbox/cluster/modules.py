"""A Go module to build programs of other modules in: it requires them."""

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
from gpufleet_sandbox.process import own_group, run, wait_unreaped

DOWNLOADS_AT_ONCE = 6
BUILD_SECONDS = 3600
REPORT_EVERY = 15.0  # seconds
TOOLS = """\
//go:build tools

package tools

import (
{imports}
)
"""


@dataclass(frozen=True, slots=True)
class OwnModule:
    """The module in `folder`; `go`: the go command, `environment`: its variables."""

    go: Path
    folder: Path
    environment: Mapping[str, str]
    progress: Callable[[str], None]

    def create(self, packages: Sequence[str], require: str, replace: Mapping[str, str]) -> None:
        """Write go.mod and the imports of `packages`, and resolve all versions.

        `require` is module@version; `replace` is module -> path, or module@version.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "go.mod").unlink(missing_ok=True)
        self.run("mod", "init", "example.org/sandbox")
        imports = "\n".join(f'\t_ "{package}"' for package in packages)
        (self.folder / "tools.go").write_text(TOOLS.format(imports=imports))
        self.edit(f"-require={require}", *(f"-replace={old}={new}" for old, new in replace.items()))
        # -e: ignore test packages of dependencies that proxies no longer serve
        self.run("mod", "tidy", "-e")

    def edit(self, *edits: str) -> None:
        """Change go.mod."""
        self.run("mod", "edit", *edits)

    def build(
        self, what: str, packages: Mapping[str, str], target: Path, flags: str, tags: str = ""
    ) -> None:
        """Build programs in one run: name -> package. Moves complete programs to `target`.

        `flags`: of the linker; `what`: their name in progress.
        """
        built = self.folder / "built"
        built.mkdir(exist_ok=True)
        # name a single program here: go names a package that ends in /v3 after its parent
        output = f"{built}/" if len(packages) > 1 else str(built / next(iter(packages)))
        words = ["build", "-v", "-gcflags", COMPILER, "-ldflags", flags, "-tags", tags]
        self._watch(what, [*words, "-o", output, *packages.values()], self._count(packages))
        target.mkdir(parents=True, exist_ok=True)
        for name in packages:
            (built / name).replace(target / name)

    def download(self, module: str, version: str) -> dict[str, Any]:
        """The output of `go mod download -json` for a module; with `Error` if it failed."""
        done = self.run("mod", "download", "-json", f"{module}@{version}", check=False)
        found: dict[str, Any] = json.loads(done or '{"Error": "go printed nothing"}')
        return found

    def first_served(self, wanted: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Module -> the first of its versions that the proxy serves; without modules that it does
        not serve. If the programs need such a module, go reports it later.
        """

        def first(item: tuple[str, Sequence[str]]) -> tuple[str, str]:
            module, candidates = item
            served = (one for one in candidates if "Error" not in self.download(module, one))
            return module, next(served, "")

        with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
            found = dict(pool.map(first, wanted.items()))
        return {module: version for module, version in found.items() if version}

    def folder_of(self, module: str) -> Path | None:
        """The folder of a module of this build, or None if the build does not use it."""
        found = self.run("list", "-m", "-f", "{{.Dir}}", module, check=False).strip()
        return Path(found) if found else None

    def run(self, *words: str, check: bool = True) -> str:
        """Standard output of a go command in the folder; SandboxError if it fails."""
        self.folder.mkdir(parents=True, exist_ok=True)
        done = run(
            [self.go, *words], check=check, env=self.environment, cwd=self.folder,
            timeout=BUILD_SECONDS, group=True,
        )  # fmt: skip
        return done.stdout

    def _count(self, packages: Mapping[str, str]) -> int:
        """The number of packages that the programs consist of."""
        return len(self.run("list", "-deps", *packages.values()).split())

    def _watch(self, what: str, words: Sequence[str], total: int) -> None:
        """Run a build, which prints each package that it compiles, and report progress."""
        start = reported = time.monotonic()
        last: deque[str] = deque(maxlen=20)
        with own_group(
            [str(self.go), *words], cwd=self.folder, env=dict(self.environment),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            assert process.stderr
            watchdog = Timer(BUILD_SECONDS, os.killpg, (process.pid, signal.SIGKILL))
            try:
                watchdog.start()
                for number, line in enumerate(process.stderr):
                    last.append(line)
                    if time.monotonic() - reported >= REPORT_EVERY:
                        reported = time.monotonic()
                        self.progress(progress_line(what, number, total, reported - start))
                wait_unreaped(process)
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

    The last 5 % are linking, which prints no packages.
    """
    share = min(0.95, 0.95 * done / max(total, 1))
    left = seconds / share - seconds if share else 0
    rest = f", about {max(1, round(left / 60))} min left" if share > 0.05 else ""
    return f"building {what}: {share:.0%} of {total} packages{rest}"
