"""catalog.d/: entries of a user's own, how they are shown, and files that cannot be used."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from gpufleet.cli import main
from gpufleet.cli.own_catalog import require_own_catalog
from gpufleet.core.stopped import Stopped
from gpufleet.helm.chart_choice import choose_charts, load_charts
from gpufleet.node.catalog import load_catalog
from gpufleet.run.report import HostReport
from gpufleet.run.report_table import show_report
from gpufleet.status.support import load_runtimes

BRANCHES = """
branches:
  - branch: 700
    kind: lts
    newest: 700.10.01
    modules: [open]
    source: https://example.com/700 (read 2026-11-29)
  - {branch: 580, newest: 580.300.01, versions: [580.178.04]}
"""
GPUS = """
gpus:
  - {id: 0x2bb5, names: [NVIDIA Test Board]}
"""
KEYS = """
cuda:
  keys:
    - {file: CDF6BA43.pub, fingerprints: [0123456789ABCDEF0123456789ABCDEF01234567]}
"""
TOOLKIT = """
newest: 1.29.0
versions:
  - {version: 1.29.0, source: https://example.com/1.29 (read 2026-11-29)}
"""
CHARTS = """
kubernetes: {"1.99": 2040-01-01}
charts:
  gpu-operator:
    picks:
      - {from: "1.36", version: v27.9.0, why: tried by us}
      - {from: "1.34", version: v27.8.0, why: tried}
"""
RUNTIMES = """
runtimes:
  - name: containerd
    minors: [{minor: "2.9", end_of_life: 2030-01-01, source: https://example.com (read 2026-11-29)}]
"""
ALL = {
    "branches": BRANCHES,
    "gpus": GPUS,
    "repositories": KEYS,
    "toolkit": TOOLKIT,
    "charts": CHARTS,
    "runtime_support": RUNTIMES,
}


def catalog(*words: str) -> Result:
    return CliRunner().invoke(main, ["catalog", *words])


@pytest.fixture
def all_entries(own_folder: Path) -> Path:
    for name, text in ALL.items():
        (own_folder / f"{name}.yaml").write_text(text)
    return own_folder


@pytest.mark.usefixtures("all_entries")
def test_entries_are_added_and_corrected() -> None:
    known = load_catalog()
    added, corrected = known.branch(700), known.branch(580)
    assert added is not None
    assert corrected is not None
    assert (added.newest, corrected.newest, corrected.kind) == ("700.10.01", "580.300.01", "lts")
    assert corrected.versions[-2:] == ("580.173.02", "580.178.04")
    assert known.gpu(0x2BB5) is not None
    assert known.cuda.key("CDF6BA43.pub").fingerprints[0].startswith("0123")
    assert len(known.cuda.keys) == 5
    assert (known.toolkit.newest, known.toolkit.versions[-1].version) == ("1.29.0", "1.29.0")
    assert load_runtimes().runtimes[0].minor_of("2.9.1") is not None
    chosen = [
        choose_charts(load_charts(), each)["gpu-operator"] for each in ("1.33", "1.35", "1.99")
    ]
    assert [each.version for each in chosen] == ["v26.7.0", "v27.8.0", "v27.9.0"]


@pytest.mark.usefixtures("all_entries")
def test_a_command_of_the_catalog_names_them_and_uses_them() -> None:
    result = catalog("driver", "--distro", "ubuntu2404", "--gpu", "T4", "--json")
    assert '"branch": "700"' in result.stdout
    for text in (
        "GF211 info",
        "branches[700] (new)",
        "branches[580],",
        "gpus[0x2bb5]",
        "[1.34] (new)",
    ):
        assert text in result.stderr
    assert "GF211" not in result.stdout


@pytest.mark.usefixtures("all_entries")
def test_a_plan_names_them_once(capsys: pytest.CaptureFixture[str]) -> None:
    hosts = [HostReport(name) for name in ("gpu-1", "gpu-2", "gpu-3")]
    console = Console(width=200)
    show_report(console, hosts, dry=True)
    assert capsys.readouterr().out.count("GF211") == 1
    show_report(console, hosts)
    assert "GF211" not in capsys.readouterr().out


@pytest.mark.usefixtures("all_entries")
def test_without_the_folder_the_catalog_is_the_shipped_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_catalog().branch(700) is None
    assert "GF211" not in catalog("branches").stderr


def test_other_files_are_not_read(own_folder: Path) -> None:
    (own_folder / "README.md").write_text("- [")
    (own_folder / ".branches.yaml.swp.yaml").write_text("- [")
    (own_folder / "branches.yaml").write_text("# nothing yet\n")
    require_own_catalog()
    assert catalog("branches").exit_code == 0


UNREAD: dict[str, tuple[bytes, str]] = {
    "a list": (b"- branch: 700\n", "it must be a mapping"),
    "a text": (b"branches\n", "it must be a mapping"),
    "not YAML": (b"branches: [\n", "it is not YAML"),
    "a tab": (b"branches:\n\t- x\n", "line 2"),
    "a key twice": (b"branches: []\nbranches: []\n", "the key branches twice"),
    "a key twice, deep down": (b"x: [{a: {b: 1, b: 2}}]\n", "the key b twice"),
    "an alias": (b"a: &x {b: 1}\nc: *x\n", "an alias"),
    "an alias of itself": (b"branches: &x [*x]\n", "an alias"),
    "not UTF-8": (b"branches: [{branch: 1, note: \xff\xfe}]\n", "it is not UTF-8"),
    "UTF-16": ("branches: []\n".encode("utf-16"), "it is not UTF-8"),
    "two documents": (b"a: 1\n---\nb: 2\n", "it is not YAML"),
    "a day that does not exist": (b"as_of: 2026-02-31\n", "cannot be read"),
    "a key that is a list": (b"? [a, b]\n: 1\n", "it is not YAML"),
    "an unknown tag": (b"branches: !!python/object:os.system {}\n", "it is not YAML"),
    "deep": (b"a: " + b"[" * 5000, "cannot be read"),
    "large": (b"# " + b"x" * (1 << 20), "more than 1 MiB"),
    "escapes": (b"a: \x1b[31m\n", "it is not YAML"),
    "a login": (b"cuda: {base: 'https://me:geheim@mirror.example.com'}\n", "a login in a URL"),
    "a login, and an error": (b"x: https://me:geheim@a.example.com\n  y: [\n", "it is not YAML"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNREAD)
def test_a_file_that_cannot_be_used(name: str, own_folder: Path) -> None:
    data, why = UNREAD[name]
    (own_folder / "branches.yaml").write_bytes(data)
    (own_folder / "charts.yaml").write_text("- a list\n")
    result = catalog("branches")
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 2
    assert f"GF209 Cannot use catalog.d/branches.yaml: {why}"[:40] in result.stderr
    assert why in result.stderr
    assert "Cannot use catalog.d/charts.yaml" in result.stderr  # every file at once
    assert "geheim" not in result.output
    assert "\x1b" not in result.output


NEW = "580.300.01"
OF_580 = "branches: [{branch: 580, %s}]"
WRONG: dict[str, tuple[str, str, str]] = {
    "a missing key": ("branches", "branches: [{branch: 700}]", "branches[700].newest is missing"),
    "no name": ("branches", "branches: [{kind: lts}]", "].branch is missing"),
    "a number": ("branches", OF_580 % "newest: 580.95", "branches[580].newest must be text"),
    "another branch": ("branches", OF_580 % "newest: 595.1.1", "branches[580] has the version"),
    "no version": ("branches", OF_580 % "newest: new", "branches[580].newest"),
    "an unknown key": ("branches", OF_580 % "colour: red", "branches[580].colour is not a key"),
    "a map for a list": ("branches", "branches: {branch: 580}", "branches must be a list"),
    "nothing for a list": ("branches", "branches:", "branches must be a list"),
    "a list for a map": ("charts", "charts: [gpu-operator]", "charts must be a mapping"),
    "an id in hexadecimal": ("gpus", "gpus: [{id: 0x9999}]", "gpus[0x9999].names is missing"),
    "a text for an entry": ("gpus", "gpus: [H100]", "gpus["),
    "nothing after an entry without a name": (
        "branches", "branches:\n  - {b: lts, newest: 700.1.1}\n  -\n", "branches[",
    ),
    "a fingerprint": (
        "repositories", "cuda: {keys: [{file: CDF6BA43.pub, fingerprints: [AB]}]}",
        "cuda.keys[CDF6BA43.pub].fingerprints",
    ),
    "a misspelt key": (
        "toolkit", "repository: {key: {files: x}}", "repository.key.files is not a key",
    ),
    "a newest version without an entry": (
        "toolkit", "newest: 1.99.0", "the file has the newest version 1.99.0, which versions",
    ),
    "a minor as a number": ("charts", "kubernetes: {1.40: 2028-01-01}", "kubernetes.1.4"),
    "a chart": ("charts", "charts: {mine: {title: x}}", "charts.mine.repository is missing"),
    "a runtime": (
        "runtime_support", "runtimes: [{name: containerd, minors: [{minor: 3}]}]", "minor",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_entry_is_named_with_its_file_and_key(name: str, own_folder: Path) -> None:
    file, text, place = WRONG[name]
    (own_folder / f"{file}.yaml").write_text(text)
    with pytest.raises(Stopped) as caught:
        require_own_catalog()
    for finding in caught.value.findings:
        assert finding.code == "GF209"
        assert finding.message.startswith(f"Cannot use catalog.d/{file}.yaml: ")
    assert place in " ".join(finding.message for finding in caught.value.findings)


def test_the_newest_version_of_the_catalog_stays_known(own_folder: Path) -> None:
    (own_folder / "branches.yaml").write_text(f"branches: [{{branch: 580, newest: {NEW}}}]")
    known = load_catalog().branch(580)
    assert known is not None
    assert (known.newest, known.versions[-1]) == (NEW, "580.178.04")


def test_a_working_directory_that_is_gone(own_folder: Path) -> None:
    own_folder.rmdir()
    own_folder.parent.rmdir()
    result = catalog("branches")
    assert result.exit_code == 2
    assert "GF209 Cannot use catalog.d: the working directory cannot be read" in result.stderr


def test_a_misspelt_file(own_folder: Path) -> None:
    (own_folder / "branch.yaml").write_text(BRANCHES)
    (own_folder / "charts.yml").write_text(CHARTS)
    result = catalog("branches")
    assert result.exit_code == 2
    for meant in ("branches.yaml", "charts.yaml"):
        assert f"did you mean {meant}" in result.stderr


def test_what_is_no_file(own_folder: Path) -> None:
    os.mkfifo(own_folder / "branches.yaml")
    (own_folder / "charts.yaml").symlink_to("nowhere")
    (own_folder / "gpus.yaml").mkdir()
    result = catalog("branches")
    assert (result.exit_code, result.stderr.count("it is not a regular file")) == (2, 3)


def test_a_folder_that_is_a_file(own_folder: Path) -> None:
    own_folder.rmdir()
    own_folder.write_text("")
    assert "GF209 Cannot use catalog.d: Not a directory" in catalog("branches").stderr


@pytest.mark.parametrize("command", ["plan", "status", "verify", "doctor", "upgrade"])
def test_no_command_begins_with_a_wrong_entry(command: str, own_folder: Path) -> None:
    (own_folder / "branches.yaml").write_text("branches: [{branch: 700}]")
    result = CliRunner().invoke(main, [command, "inventories/prod.py"])
    assert (result.exit_code, "branches[700].newest is missing" in result.stderr) == (2, True)


def test_a_check_of_the_catalog_ends_with_1(own_folder: Path) -> None:
    (own_folder / "branches.yaml").write_text("- a\n")
    result = catalog("check")
    assert (result.exit_code, "GF209" in result.output) == (1, True)


def test_the_examples_of_the_page_are_valid(own_folder: Path) -> None:
    page = Path(__file__).resolve().parents[3] / "docs/how-to/catalog.md"
    examples = re.findall(r"```yaml\n# catalog\.d/([\w.]+)(.*?)```", page.read_text(), re.DOTALL)
    for name, text in examples:
        (own_folder / name).write_text(f"#{text}")
    require_own_catalog()
    known = load_catalog().branch(625)
    assert (len(examples), known is not None) == (3, True)
    assert len(load_catalog().kubernetes.repository.key.fingerprints) == 2
