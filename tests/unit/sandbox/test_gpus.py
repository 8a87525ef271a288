"""GPUs of hosts by model and number: --gpus of `sandbox cluster up`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from gpufleet.cli import main
from gpufleet.driver.find import find_gpu
from gpufleet.node.catalog import load_catalog
from gpufleet_sandbox import KINDS, Sandbox, SandboxError
from gpufleet_sandbox.gpus import MODELS, MOST, Gpus, parse_gpus, parse_list, with_gpus
from gpufleet_sandbox.kubernetes import cluster
from gpufleet_sandbox.kubernetes.cluster import placed
from gpufleet_sandbox.machine import nvidia
from gpufleet_sandbox.machine.pci import write_device
from gpufleet_sandbox.state import HostState, SandboxState

pytestmark = pytest.mark.claim("GPUs of sandbox nodes are chosen by model and number.", level=1)

TABLE = Path(nvidia.__file__).with_name("gpus.txt")


@pytest.mark.parametrize(
    ("text", "gpus"),
    [("h100:8", Gpus("h100", 8)), ("A100", Gpus("a100", 1)), (" l40s:16", Gpus("l40s", 16))],
)
def test_a_model_and_a_number(text: str, gpus: Gpus) -> None:
    assert parse_gpus(text) == gpus


@pytest.mark.parametrize("text", ["", "h101:8", "h100:0", "h100:17", "h100:-1", "h100:²", "8"])
def test_another_text_is_rejected_with_what_is_possible(text: str) -> None:
    with pytest.raises(ValueError, match=r"models a10, a100|1 to 16 GPUs"):
        parse_gpus(text)


def test_models_are_known_to_nvml_and_to_the_catalog() -> None:
    lines = TABLE.read_text().splitlines()
    listed = {int(line.split("|")[0], 16): line for line in lines if not line.startswith("#")}
    catalog = load_catalog()
    for model, device in MODELS.items():
        [named] = {catalog.generation(found) for found in find_gpu(catalog, model).devices}
        assert catalog.generation(device) is named
        assert model.upper() in listed[device].split("|")[1].upper()


def test_a_host_has_them_on_its_bus(tmp_path: Path) -> None:
    kind = with_gpus(KINDS["debian12"], f"h200:{MOST}")
    for device in kind.devices:
        write_device(tmp_path, device)
    found = [path for path in tmp_path.iterdir() if "0x2335" in (path / "device").read_text()]
    assert len(found) == MOST
    assert with_gpus(KINDS["debian12"], "") is KINDS["debian12"]


def test_nodes_beyond_the_list_have_the_last() -> None:
    found = placed(4, "h100:8,a100:4")
    assert {name: str(gpus) for name, gpus in found.items()} == {
        "ubuntu2404": "h100:8", "debian12": "a100:4", "ubuntu2404-2": "a100:4",
        "debian12-2": "a100:4",
    }  # fmt: skip
    assert list(placed(2, "a100:4,h100:8").values()) == list(parse_list("a100:4,h100:8"))
    assert placed(3, "") == {}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--real --gpus h100:8,k80:4", "'k80:4': the sandbox has the models a10, a100,"),
        ("--real --gpus h100:8,", "'': the sandbox has the models"),
        ("--real --nodes 1 --gpus h100:8,a100:4", "GPUs of 2 nodes, and there are 1"),
        ("--gpus h100:8", "models need --real"),
        ("--gpus 17", "0 to 16"),
        ("--real --kubernetes 1.18", "--real has Kubernetes 1.32, 1.36, 1.37; not 1.18"),
    ],
)
def test_wrong_options_are_usage_errors(words: str, reason: str) -> None:
    done = CliRunner().invoke(main, ["sandbox", "cluster", "up", *words.split()])
    assert (done.exit_code, reason in done.output) == (2, True), done.output


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """A sandbox whose state says that it is a cluster of one host."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    state = SandboxState("x", "podman", "imitation", "gpufleet-x", "10.89.0.0/24")
    state.kubernetes = "1.36.3"
    state.hosts["ubuntu2404"] = HostState(
        "ubuntu2404", "ubuntu2404", "10.89.0.2", "c", "i", "/k", "/h", "root", "h100:8"
    )
    state.save()
    return Sandbox("x")


def test_hosts_of_another_release_are_not_changed(box: Sandbox) -> None:
    with pytest.raises(SandboxError, match=r"GF653.*runs Kubernetes 1\.36\.3, not 1\.32\.13"):
        cluster.up(box, "1.32", 1, print)


def test_a_host_that_is_up_with_other_gpus_is_not_changed(box: Sandbox) -> None:
    with pytest.raises(SandboxError, match=r"GF662.*ubuntu2404 is up with h100:8, not with a100:4"):
        box.check_gpus(box.state, {"ubuntu2404": parse_gpus("a100:4")})
    box.check_gpus(box.state, {"ubuntu2404": parse_gpus("h100:8"), "debian12": parse_gpus("t4")})
    assert box.host("ubuntu2404").kind.summary == "ubuntu2404, h100:8"
