"""The page of environment variables has those that the code reads, and no other."""

from __future__ import annotations

import re
from functools import cache

from documents import ROOT, documents

PAGE = "docs/reference/environment.md"
READ = re.compile(r"(?:environ(?:\.get)?[\[(]\s*|getenv\()[\"']([A-Z_]+)[\"']|\$\{([A-Z_]+)[:}]")
FOLDERS = ("gpufleet", "inventories", "ci", "sandbox")
LIBRARIES = {"SSL_CERT_FILE"}  # read by Python itself
OTHERS = {  # read by CI systems, by programs in Go, and by pyinfra
    "CI_PROJECT_DIR", "GITHUB_OUTPUT", "GITHUB_PATH", "GOGC", "LOGNAME", "PYINFRA_PROGRESS",
    "RUNNER_TEMP", "SIM_HOOK"
}  # fmt: skip


@cache
def code() -> str:
    paths = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    return "\n".join(path.read_text() for path in paths if path.suffix in (".py", ".sh", ".yml"))


def read() -> set[str]:
    """Names of variables that code reads with the name as a literal."""
    return {name for pair in READ.findall(code()) for name in pair if name}


def test_the_page_has_every_variable_and_no_other() -> None:
    rows = [line for line in documents()[PAGE].splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([A-Z_]{3,})(?:=\w+)?`", row)}
    product = {name for name in read() if name.startswith(("GPUFLEET", "KUBE", "XDG"))}
    assert product - named == set()
    gone = {name for name in named - LIBRARIES if not re.search(rf'["{{$]{name}\b', code())}
    assert gone == set()


def test_no_other_variable_is_read() -> None:
    known = OTHERS | {name for name in read() if f"`{name}" in documents()[PAGE]}
    assert read() - known == set()
