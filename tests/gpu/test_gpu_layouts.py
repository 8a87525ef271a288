"""Layout and settings of a real GPU: its facts, the catalog's profiles, the refusals of a plan, and
the program of the role, which changes nothing on a GPU with the wanted settings."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gpufleet.core.render import render_template
from gpufleet.facts.gpu import LAYOUT_FILE, GpuState, Listed
from gpufleet.facts.model import NodeFacts
from gpufleet.gpu.layouts import layout_text
from gpufleet.gpu.models import load_mig_catalog
from gpufleet.gpu.role import ROLE
from gpufleet.host.shell import script_command
from tests.gpu.conftest import gather
from tests.unit.gpu.gpu_host import node_plan

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.claim(
        "On a real GPU, limits, layouts that do not fit and GPUs in use are refused before a "
        "change, and a GPU that is as wanted is not touched.",
        level=8,
    ),
]

ON_OFF = {"Enabled": True, "Disabled": False}
# answers questions; a change is written down and refused
READS_ONLY = """#!/bin/sh
case " $* " in
    *' -L '* | *' --query-gpu='* | *' -lgi '*) exec "{real}" "$@" ;;
esac
echo "$*" >>"{folder}/changes"
exit 9
"""


@pytest.fixture
def wanting() -> NodeFacts:
    """The facts of a machine whose inventory has keys of the role gpu."""
    return gather("sh", paths=(LAYOUT_FILE,))


def states(facts: NodeFacts) -> tuple[GpuState, ...]:
    assert facts.listed
    assert facts.listed.error == ""
    assert facts.listed.states
    return facts.listed.states


def codes(facts: NodeFacts, **data: object) -> set[str]:
    """The blockers of the role gpu."""
    found = node_plan(facts, driver_enabled=False, **data).all_findings
    return {each.code for each in found if each.blocks and each.code.startswith("GF48")}


def test_state_and_limits_agree_with_nvidia_smi(wanting: NodeFacts) -> None:
    done = subprocess.run(["nvidia-smi", "-q", "-x"], capture_output=True, check=True, timeout=60)
    listed = {gpu.attrib["id"][4:].lower(): gpu for gpu in ElementTree.fromstring(done.stdout)
              if gpu.tag == "gpu"}  # fmt: skip
    assert {state.slot for state in states(wanting)} == set(listed)
    for state in states(wanting):
        text = listed[state.slot].findtext
        assert state.mig is ON_OFF.get(text("mig_mode/current_mig", ""))
        assert state.ecc is ON_OFF.get(text("ecc_mode/current_ecc", ""))
        assert state.compute_mode == text("compute_mode")
        limits = (state.default_power, state.least_power, state.most_power)
        names = ("default", "min", "max")
        power = "gpu_power_readings"
        assert [f"{limit:.2f} W" for limit in limits] == [
            text(f"{power}/{name}_power_limit") for name in names
        ]
        assert f"{state.most_clock:.0f} MHz" == text("max_clocks/sm_clock")
        assert f"{state.most_memory_clock:.0f} MHz" == text("max_clocks/mem_clock")


def mig(index: int, option: str) -> str:
    words = ["nvidia-smi", "mig", "-i", str(index), option]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False).stdout


@pytest.mark.claim(
    "The catalog has the MIG profiles, their numbers and their places that a real GPU lists.",
    level=8,
)
def test_the_catalog_has_the_profiles_of_the_gpu(wanting: NodeFacts) -> None:
    catalog = load_mig_catalog()
    for index, (gpu, state) in enumerate(zip(wanting.gpus, states(wanting), strict=True)):
        model = catalog.model(gpu.device)
        assert (model is None) == (state.mig is None)
        text = mig(index, "-lgip")
        profiles = re.findall(r"MIG (\S+)\s+(\d+)\s+\d+/(\d+)", text)
        if model is None or not profiles:
            pytest.skip(f"nvidia-smi lists no profiles here: {text.strip()}")
        places = {
            number: (int(size), tuple(map(int, starts.split(","))))
            for number, starts, size in re.findall(
                r"Profile ID +(\d+) Placements? *: \{([\d,]+)\}:(\d+)", mig(index, "-lgipp")
            )
        }
        assert {name: (int(most), *places[number]) for name, number, most in profiles} == {
            name: (shape.most, shape.memory, shape.starts)
            for name, shape in catalog.shapes(model).items()
        }


def test_values_out_of_range_are_refused(wanting: NodeFacts) -> None:
    [state, *_] = states(wanting)
    assert state.most_power
    assert state.least_power
    assert state.most_clock
    allowed, most = int(state.most_power), int(state.most_clock)
    assert codes(wanting, gpu_power_limit=allowed) == set()
    assert codes(wanting, gpu_power_limit=allowed + 1) == {"GF486"}
    assert codes(wanting, gpu_power_limit=int(state.least_power) - 1) == {"GF486"}
    assert codes(wanting, gpu_clocks=(210, most)) == set()
    assert codes(wanting, gpu_clocks=(210, most + 1)) == {"GF486"}


def test_layouts_that_do_not_fit_are_refused(wanting: NodeFacts) -> None:
    model, catalog = load_mig_catalog().model(wanting.gpus[0].device), load_mig_catalog()
    if model is None:
        pytest.skip("this GPU has no MIG")
    for profile, shape in catalog.shapes(model).items():
        assert codes(wanting, gpu_mig=layout_text([profile] * shape.most)) <= {"GF488", "GF489"}
        if shape.most < catalog.geometry(model).compute:
            too_many = layout_text([profile] * (shape.most + 1))
            assert "GF481" in codes(wanting, gpu_mig=too_many)
    assert "GF481" in codes(wanting, gpu_mig="1g.99gb:1")


@pytest.mark.usefixtures("program")
def test_a_gpu_in_use_is_not_divided() -> None:
    facts = gather("sh", paths=(LAYOUT_FILE,))
    model, catalog = load_mig_catalog().model(facts.gpus[0].device), load_mig_catalog()
    if model is None:
        pytest.skip("this GPU has no MIG")
    largest = max(catalog.shapes(model), key=lambda name: catalog.shapes(model)[name].compute)
    assert "GF488" in codes(facts, gpu_mig=largest)


def test_the_program_changes_nothing_on_a_gpu_that_is_as_wanted(
    wanting: NodeFacts, tmp_path: Path
) -> None:
    [state, *_] = states(wanting)
    words = {
        "mig": "" if state.mig is None or state.mig else "off",
        "ecc": "" if state.ecc is None else str(int(state.ecc)),
        "power": "" if state.power is None else f"{state.power:.0f}",
        "compute": state.compute_mode,
    }
    line = " ".join(f"{key}={value}" for key, value in words.items() if value)
    wanted = tmp_path / "wanted"
    wanted.write_text(f"{state.slot} {line}\n")
    real = shutil.which("nvidia-smi")
    smi = tmp_path / "nvidia-smi"
    smi.write_text(READS_ONLY.format(real=real, folder=tmp_path))
    program = tmp_path / "program"
    text = render_template("gpu/gpufleet-gpus", file=str(wanted))
    text = text.replace("/run/gpufleet-gpus.lock", str(tmp_path / "lock"))
    program.write_text(text.replace("\nPATH=", f"\nPATH={tmp_path}:"))
    smi.chmod(0o755)
    done = subprocess.run(["sh", program], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert not (tmp_path / "changes").exists()
    # the same question of an upgrade, and a layout that this GPU does not have
    check = script_command("gpu/check_layout", "GPUs differ", str(wanted)).get_raw_value()
    other = "mig=1g.99gb" if not state.mig else "mig=off"
    for words_of_line, status in ((line, 0), (other, 1)):
        wanted.write_text(f"{state.slot} {words_of_line}\n")
        done = subprocess.run(
            ["sh", "-c", check], capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode != 0) == bool(status), done.stdout + done.stderr


def test_a_plan_of_the_present_state_has_no_change(wanting: NodeFacts) -> None:
    [state, *_] = states(wanting)
    if state.power is None or state.mig:
        pytest.skip("this GPU has no power limit, or is divided")
    plan = node_plan(wanting, driver_enabled=False, gpu_power_limit=int(state.power)).of(ROLE)
    assert plan
    assert plan.changes == ()
    listed = Listed(1, states=(replace(state, power=state.power - 50),))
    plan = node_plan(replace(wanting, listed=listed), driver_enabled=False,
                     gpu_power_limit=int(state.power)).of(ROLE)  # fmt: skip
    assert plan
    assert [list(change.differs) for change in plan.changes] == [["power"]]
