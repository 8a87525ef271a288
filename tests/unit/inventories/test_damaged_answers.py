"""Inventories that read other systems, with damaged answers: one line says what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from source_fakes import (
    ANSWERS,
    PROGRAMS,
    FakeProcess,
    damaged,
    error_of,
    load,
    places,
    recorded,
    texts,
)

from gpufleet.run import sources
from tests.selection import some

DAMAGES = [..., None, "", "x", 7, -1.5, True, [], {}, [[]], "\x1b[31m\n"]


@pytest.mark.parametrize("new", some(DAMAGES, [..., None, "\x1b[31m\n", []]))
@pytest.mark.parametrize("source", PROGRAMS)
def test_each_damaged_value_gives_groups_or_one_error(
    source: str, new: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every value of an answer in turn is missing, or of another kind."""
    monkeypatch.setattr(sources, "Process", FakeProcess)
    files = sorted(path.stem for path in ANSWERS.glob(f"{PROGRAMS[source]}*.json"))
    whole = {name: recorded(name) for name in files}
    errors = []
    for name in files:
        for path in places(whole[name]):
            FakeProcess.answers = {**whole, name: damaged(whole[name], path, new)}
            try:
                groups = load(source)
            except sources.SourceError as error:
                errors.append(str(error))
            else:
                assert all(text.isprintable() for text in texts(groups))
    assert errors
    assert all(error.isprintable() for error in errors)


@pytest.mark.parametrize(
    ("source", "path", "new", "error"),
    [
        ("aws", ("Reservations", 0, "Instances", 0, "State"), {}, "Instances[0].State.Name is"),
        ("aws", ("Reservations", 0, "Instances", 0, "PrivateIpAddress"), ..., "PrivateIpAddress"),
        ("azure", (0, "powerState"), ..., "az vm list: [0].powerState is missing"),
        ("azure", (0, "tags", "gpufleet"), "gpu_node", "'gpu_node', expected control_plane"),
        ("azure", (0, "tags", "gpufleet_gpus"), "eight", "tags.gpufleet_gpus is 'eight'"),
        ("azure", (2, "name"), "gpu-1", "two machines have the name gpu-1"),
        ("azure", (0, "name"), "@local", "'@local' cannot be the name of a host"),
        ("azure", (0, "privateIps"), "-oProxyCommand=x", "gpu-1 has no address"),
        ("gcp", (0, "networkInterfaces"), [], "networkInterfaces.0.networkIP is missing"),
        ("gcp", (0, "labels"), "gpufleet", "[0].labels is text, expected an object"),
        ("maas", (0, "ip_addresses"), [], "[0].ip_addresses.0 is missing: expected text"),
        ("maas", (0, "tag_names"), ..., "[0].tag_names is missing: expected a list"),
        ("slurm", ("nodes",), ..., "scontrol show nodes: nodes is missing: expected a list"),
        ("slurm", ("nodes", 0, "state"), "MIXED", "nodes[0].state is text, expected a list"),
        ("terraform", ("format_version",), "2.0", "format_version is not 1"),
        ("terraform", ("values",), ..., "terraform show: the state is empty; is '.' the right"),
        ("terraform", ("values", "root_module", "resources", 0, "type"), 3, "resources[0].type"),
    ],
)  # fmt: skip
def test_an_error_names_what_is_wrong(
    source: str, path: tuple[str | int, ...], new: Any, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "Process", FakeProcess)
    files = [path.stem for path in ANSWERS.glob(f"{PROGRAMS[source]}*.json")]
    FakeProcess.answers = {name: recorded(name) for name in files}
    first = "aws-describe-instances" if source == "aws" else PROGRAMS[source]
    FakeProcess.answers[first] = damaged(FakeProcess.answers[first], path, new)
    assert error in error_of(source)


@pytest.mark.parametrize("source", PROGRAMS)
def test_a_program_that_does_not_answer(source: str, programs: Path) -> None:
    program = programs / PROGRAMS[source]
    program.write_text("#!/bin/sh\necho 'Error: no \x1b[31mlogin' >&2\necho more >&2; exit 1\n")
    assert error_of(source).endswith(r"fails: Error: no \x1b[31mlogin")
    program.write_text("#!/bin/sh\nexit 3\n")
    assert error_of(source).endswith("it exits with status 3")
    for text in ("", "<html>", "[" * 100_000, '"text"', "3", "null"):
        (programs / "text").write_text(text)
        program.write_text(f"#!/bin/sh\ncat {programs}/text\n")
        assert any(each in error_of(source) for each in ("is not JSON", "is missing", "expected a"))
    program.write_text("#!/bin/sh\necho '{}'\n" if source != "terraform" else "#!/bin/sh\necho []")
    assert "is missing" in error_of(source) or "is an object" in error_of(source)


@pytest.mark.parametrize("source", PROGRAMS)
def test_a_program_that_is_not_installed(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    assert f"cannot start {PROGRAMS[source]} (No such file" in error_of(source)
    assert error_of(source).partition("): ")[2].startswith(("install ", "run this "))


@pytest.mark.parametrize("source", PROGRAMS)
def test_no_machine_is_an_error(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "Process", FakeProcess)
    FakeProcess.answers = {
        "aws-describe-instances": {"Reservations": []},
        "scontrol": {"nodes": []},
        "terraform": {"format_version": "1.0", "values": {"root_module": {}}},
        **{program: [] for program in ("az", "gcloud", "maas")},
    }
    assert error_of(source).startswith(f"{source}: no ")
