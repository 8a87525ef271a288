"""parse_node_facts on what hosts printed: golden results, and output that is damaged.

To accept changed results: GPUFLEET_UPDATE_GOLDEN=1 pytest tests/unit/facts/test_parse.py
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpufleet.facts.files import parse_provenance
from gpufleet.facts.model import ManagedFile, NodeFacts
from gpufleet.facts.parse import parse_node_facts
from gpufleet.facts.record import HostRecord
from gpufleet.facts.sections import SECTIONS, FactsError

CAPTURES = sorted((Path(__file__).parent / "captures").glob("*.txt"))
GOLDEN = [path.with_suffix(".json") for path in CAPTURES]
LINES = {path.stem: path.read_text("utf-8").splitlines() for path in CAPTURES}


def plain(value: Any) -> Any:
    """The value as JSON data, in a stable order."""
    if isinstance(value, HostRecord):
        return plain(value.as_json()) if value.exists else None
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, dict):
        return {key: plain(value[key]) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_golden(golden: Path) -> None:
    found = plain(dataclasses.asdict(parse_node_facts(LINES[golden.stem])))
    if os.environ.get("GPUFLEET_UPDATE_GOLDEN"):
        golden.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert found == json.loads(golden.read_text("utf-8"))


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("name", LINES)
def test_missing_section_is_named(name: str, section: str) -> None:
    start = LINES[name].index(f"@@{section}")
    rest = LINES[name][start + 1 :]
    length = next((i for i, line in enumerate(rest) if line[2:] in SECTIONS), len(rest))
    with pytest.raises(FactsError, match=rf"section {section}: it is missing") as caught:
        parse_node_facts(LINES[name][:start] + rest[length:])
    assert caught.value.section == section


def outcome(lines: list[str]) -> str:
    """`facts`, or the section that the error names."""
    try:
        assert isinstance(parse_node_facts(lines), NodeFacts)
    except FactsError as error:
        return error.section
    return "facts"


@given(name=st.sampled_from(sorted(LINES)), data=st.data())
@settings(max_examples=300, deadline=None)
def test_truncated_section_gives_facts_or_its_name(name: str, data: st.DataObject) -> None:
    lines = list(LINES[name])
    section = data.draw(st.sampled_from(SECTIONS))
    start = lines.index(f"@@{section}") + 1
    rest = lines[start:]
    length = next((i for i, line in enumerate(rest) if line.startswith("@@")), len(rest))
    body = "\n".join(rest[:length])
    cut = body[: data.draw(st.integers(0, len(body)))].split("\n")
    assert outcome(lines[:start] + cut + rest[length:]) in ("facts", section)


@given(name=st.sampled_from(sorted(LINES)), data=st.data())
@settings(max_examples=300, deadline=None)
def test_any_damage_gives_facts_or_an_error_of_its_own(name: str, data: st.DataObject) -> None:
    lines = list(LINES[name])
    index = data.draw(st.integers(0, len(lines) - 1))
    damage = data.draw(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40))
    lines[index] = data.draw(
        st.sampled_from((damage, lines[index] + damage, damage + lines[index]))
    )
    assert outcome(lines) in ("facts", *SECTIONS)


def test_output_that_was_cut_off() -> None:
    lines = LINES["el7-handwritten"]
    for length in range(0, len(lines) - 2, 7):
        with pytest.raises(FactsError):
            parse_node_facts(lines[:length])


def test_rich_host() -> None:
    facts = parse_node_facts(LINES["ubuntu2204-kubelet-handwritten"])
    assert facts.os.code == "ubuntu2204"
    assert facts.loaded_driver == facts.library == "580.95.05"
    assert facts.module_on_disk is not None
    assert facts.module_on_disk.flavour == "open"
    assert facts.kernel.headers
    assert [module.state for module in facts.dkms] == ["installed", "added", "installed"]
    assert facts.kubelet
    assert (facts.gpu_pods, len(facts.gpu_processes)) == (1, 2)
    assert facts.unattended_upgrades
    assert facts.runtimes["docker"].version == "28.3.3"
    assert facts.runtimes["docker"].live_restore
    assert facts.runtimes["containerd"].containers == 5
    assert facts.lock_holder == "unattended-upgr (process 812)"
    assert facts.keyrings[0].path == "/usr/share/keyrings/cuda-archive-keyring.gpg"
    assert len(facts.keyrings[0].fingerprints[0]) == 40
    assert facts.files["/usr/share/keyrings/cuda-archive-keyring.gpg"].content is None
    assert facts.files["/etc/containerd/config.toml"].link == "/srv/containerd.toml"
    assert facts.services["gdm.service"] == dataclasses.replace(
        facts.services["display-manager.service"], name="gdm.service"
    )
    assert facts.cdi_specs[0].driver == "550.54.15"
    assert facts.provenance.as_json() == {"driver": {"version": "580.95.05"}}
    assert facts.free_bytes["/boot"] == 190000 * 1024


def test_el7_host() -> None:
    facts = parse_node_facts(LINES["el7-handwritten"])
    assert facts.package_manager == "yum"
    assert [(module.version, module.kernel, module.state) for module in facts.dkms] == [
        ("550.163.01", "3.10.0-1160.119.1.el7.x86_64", "built"),
        ("535.161.08", "", "added"),
    ]
    assert "nouveau" in facts.modules
    assert not facts.kernel.headers
    assert facts.unattended_upgrades
    assert not facts.runfile_install
    assert facts.broken
    assert facts.keyrings[0].fingerprints == ("F4A80EB5",)
    assert len(facts.keyrings[1].fingerprints[0]) == 40
    assert facts.runtimes["docker"].live_restore
    assert not facts.runtimes["docker"].running


def test_k3s_host() -> None:
    facts = parse_node_facts(LINES["k3s-handwritten"])
    runtime = facts.runtimes["containerd"]
    assert (runtime.unit, runtime.version, runtime.containers) == ("k3s-agent.service", "1.7.23", 7)
    assert runtime.config_path == "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"
    assert facts.package_manager == "zypper"
    assert facts.kubelet
    assert not facts.privileged
    assert facts.operator_driver


@pytest.mark.parametrize(
    ("machine", "boot", "expected"),
    [
        ("0123456789abcdef0123456789abcdef", "6b7cf6a5-0c4e-4d37-9bd0-5b6f9a5d5f10", True),
        ("0123456789abcdef0123456789abcdef", "00000000-0c4e-4d37-9bd0-5b6f9a5d5f10", False),
        ("ffffffffffffffffffffffffffffffff", "6b7cf6a5-0c4e-4d37-9bd0-5b6f9a5d5f10", False),
        ("", "", False),
    ],
)
def test_controller(machine: str, boot: str, expected: bool) -> None:
    facts = parse_node_facts(
        LINES["ubuntu2204-kubelet-handwritten"],
        controller_machine_id=machine,
        controller_boot_id=boot,
    )
    assert facts.controller is expected


@pytest.mark.parametrize(
    ("content", "expected", "trouble"),
    [
        ('{"driver": {}}', {"driver": {}}, ""),
        ('{"driver": ', {}, "it is not valid JSON"),
        ("[]", {}, "it is not a JSON object"),
        (None, {}, ""),
    ],
)
def test_provenance(content: str | None, expected: object, trouble: str) -> None:
    record, why = parse_provenance(ManagedFile("/var/lib/gpufleet/provenance.json", content))
    assert record.as_json() == expected
    assert why.startswith(trouble)
    assert bool(why) == bool(trouble)


@pytest.mark.parametrize(
    "notes", ["/etc/a\t1\t2\n/etc/a\t2\t3\n/etc/b\t\t9\n", "/etc/a\t1\t3\nodd\n"]
)
def test_the_record_has_the_last_write_of_each_file(notes: str) -> None:
    """A run that failed, such as an upgrade, wrote files that it did not record."""
    there = ManagedFile("/var/lib/gpufleet/provenance.json", '{"files": {"/etc/a": "1"}}')
    written = ManagedFile("/var/lib/gpufleet/written", notes)
    record, _ = parse_provenance(there, written)
    assert record.files == {"/etc/a": "3"}
    assert not parse_provenance(None, written)[0].exists


@pytest.mark.parametrize("change", [-1, 1])
def test_a_file_that_changed_while_it_was_read(change: int) -> None:
    lines = [
        line.replace("file 0 ", f"file {max(change, 0)} ").replace(
            "file 38 ", f"file {38 + change} "
        )
        for line in LINES["ubuntu2204-sandbox"]
    ]
    with pytest.raises(FactsError, match="changed while it was read") as caught:
        parse_node_facts(lines)
    assert caught.value.section == "files"
