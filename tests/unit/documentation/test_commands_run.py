"""Commands of documents that need no host, run as they are written there."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from documents import ROOT, commands

from gpufleet.cli import main
from gpufleet.cli.completion import SHELLS
from gpufleet.core.findings import KNOWN_KINDS
from gpufleet.status import meanings
from scripts.finding_codes import codes

QUERIES = re.compile(r"^gpufleet (catalog (?!check\b).*)$")  # `check` asks the internet


def queries() -> list[tuple[str, int]]:
    """Queries of the catalog, and the exit status that the comment on the line names, or 0."""
    found = []
    for line in (line for block in commands() for line in block.lines):
        if (match := QUERIES.match(line)) and "|" not in line:
            words, _, comment = match[1].partition("#")
            words = re.sub(r"\[.*?\]", "", words).replace('"$(uname -r)"', "6.8.0-60-generic")
            status = re.search(r"exit status (\d)", comment)
            found.append((words.strip(), int(status[1]) if status else 0))
    return found


@pytest.mark.parametrize(("words", "status"), queries())
def test_queries_end_as_the_page_says(words: str, status: int) -> None:
    done = CliRunner().invoke(main, shlex.split(words))
    assert done.exit_code == status, done.output
    assert done.output.strip()


def test_there_are_queries() -> None:
    assert len(queries()) >= 7


def test_the_inventory_of_a_json_file_has_its_hosts(tmp_path: Path) -> None:
    hosts = [{"name": "gpu-1", "address": "192.0.2.11", "groups": ["gpu_nodes"]}]
    (tmp_path / "hosts.json").write_text(json.dumps(hosts))
    text = (ROOT / "inventories/hosts_json.py").read_text()
    script = text + "\nprint(gpu_nodes[0], control_plane[0], gpu_nodes[1] is control_plane[1])"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env={"GPUFLEET_HOSTS": "hosts.json"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "[('gpu-1', {'ssh_hostname': '192.0.2.11'})] [] False\n"


def test_bash_completes_after_the_commands_of_the_page(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash, "the tests need bash"
    (block,) = [each for each in commands() if "completion bash" in each.text]
    file = "~/.local/share/bash-completion/completions/gpufleet"
    asked = "COMP_WORDS=(gpufleet cat) COMP_CWORD=1; _gpufleet_completion gpufleet gpufleet"
    script = f'{block.text}\n. {file}\n{asked} cat gpufleet\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [bash, "--noprofile", "--norc", "-ec", script], env={"HOME": str(tmp_path), "PATH": path},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["catalog"]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_has_a_script_that_asks_gpufleet(shell: str) -> None:
    done = CliRunner().invoke(main, ["completion", shell])
    assert done.exit_code == 0, done.output
    assert f"_GPUFLEET_COMPLETE={shell}_complete" in done.output


def test_an_unknown_shell_is_wrong_usage() -> None:
    assert CliRunner().invoke(main, ["completion", "powershell"]).exit_code == 2


@pytest.mark.claim("`explain` prints a finding with its address.", level=1)
@pytest.mark.parametrize(("code", "room"), [("GF112", "driver"), ("gf790", "verify")])
def test_a_finding_is_explained(code: str, room: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUFLEET_DOCS", raising=False)
    done = CliRunner().invoke(main, ["explain", code])
    assert done.exit_code == 0, done.output
    kind = KNOWN_KINDS[code.upper()]
    assert done.output.startswith(f"{kind.code} blocker: {kind.title}\n")
    assert done.output.rstrip().endswith(f"docs/reference/findings/{room}.md#{code.lower()}")


def test_a_data_key_is_explained_and_a_misspelt_one_guessed() -> None:
    done = CliRunner().invoke(main, ["explain", "driver_branch", "node_reboot"])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("driver_branch: ")
    assert "Default: 'never'" in done.output
    done = CliRunner().invoke(main, ["explain", "driver_brnch"])
    assert (done.exit_code, "Did you mean driver_branch?" in done.output) == (2, True)


def test_no_address_is_printed_that_does_not_exist(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("GPUFLEET_DOCS", raising=False)
    monkeypatch.setattr(meanings, "shipped_path", lambda name: tmp_path / name)
    done = CliRunner().invoke(main, ["explain", "GF112"])
    assert (done.exit_code, "driver.md" in done.output) == (0, False)


def test_an_address_on_the_users_site(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUFLEET_DOCS", "https://docs.example.com/gpufleet/")
    done = CliRunner().invoke(main, ["explain", "GF112"])
    address = "https://docs.example.com/gpufleet/reference/findings/driver.html#gf112"
    assert done.output.rstrip().endswith(address)


def test_a_code_that_does_not_exist_is_wrong_usage() -> None:
    done = CliRunner().invoke(main, ["explain", "GF112", "GF000"])
    assert (done.exit_code, "GF000" in done.output) == (2, True)


def test_every_address_is_a_heading_of_its_rooms_page() -> None:
    found = {
        code: page.stem
        for page in (ROOT / "docs/reference/findings").glob("*.md")
        for code in re.findall(r"^## (GF\d{3})$", page.read_text(), re.MULTILINE)
    }
    assert found == codes()
