"""On which nodes a load test runs, with what, and the Job that does it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from kubernetes.client import V1Node, V1NodeSpec, V1NodeStatus, V1ObjectMeta

from gpufleet.verify.load_job import LeftOut, Load, LoadRequest, choose, job
from gpufleet.verify.load_models import load_load_test

CATALOG = load_load_test()
REQUEST = LoadRequest.of({}, CATALOG)
EXAMPLE = Path(__file__).resolve().parents[3] / "templates" / "examples" / "load-test.yaml"
H100 = {
    "nvidia.com/cuda.runtime.major": "13",
    "nvidia.com/gpu.compute.major": "9",
    "nvidia.com/gpu.compute.minor": "0",
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
}


def node(gpus: int = 8, unschedulable: bool | None = None, **labels: str | None) -> V1Node:
    """`labels`: of H100 in place of others; the last word of a label names it."""
    changed = dict(H100)
    for word, value in labels.items():
        name = next((name for name in H100 if name.endswith(word.replace("_", "."))), word)
        changed.pop(name, None)
        if value is not None:
            changed[name] = value
    return V1Node(
        metadata=V1ObjectMeta(name="gpu-1", labels=changed),
        spec=V1NodeSpec(unschedulable=unschedulable),
        status=V1NodeStatus(allocatable={"nvidia.com/gpu": str(gpus)}),
    )


def pod(gpus: int, phase: str = "Running", where: str = "gpu-1") -> Any:
    resources = SimpleNamespace(limits={"nvidia.com/gpu": str(gpus)})
    spec = SimpleNamespace(node_name=where, containers=[SimpleNamespace(resources=resources)])
    return SimpleNamespace(spec=spec, status=SimpleNamespace(phase=phase))


def chosen(request: LoadRequest = REQUEST, *pods: Any, **about: Any) -> Load:
    found = choose(CATALOG, request, node(**about), pods)
    assert isinstance(found, Load), found
    return found


@pytest.mark.parametrize(
    ("major", "minor", "cuda", "field", "image"),
    [
        ("9", "0", "13", 1004, "dcgm:4.6.0-1-ubuntu24.04"),
        ("7", "5", "13", 1004, "dcgm:4.6.0-1-ubuntu24.04"),
        ("8", "0", "12", 1004, "dcgm:4.6.0-1-ubuntu24.04"),
        ("7", "0", "12", 1004, "dcgm:4.6.0-1-ubuntu24.04"),
        ("6", "1", "12", 1007, "dcgm:4.6.0-1-ubuntu24.04"),
        ("8", "0", "11", 1004, "dcgmproftester-2.1.7-cuda11.2.2-ubuntu20.04"),
    ],
)
def test_gpu_and_driver_decide(major: str, minor: str, cuda: str, field: int, image: str) -> None:
    labels = {"compute_major": major, "compute_minor": minor, "runtime_major": cuda}
    found = chosen(REQUEST, **labels)
    assert (found.field.field, found.image.split("/")[-1].split(":", 1)[-1]) == (
        field,
        image.split(":", 1)[-1],
    )
    command = job(CATALOG, found, REQUEST)["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command[0] == f"/usr/bin/dcgmproftester{cuda}"
    assert command[1:] == ["--no-dcgm-validation", "-t", str(field), "-d", "120"]


def test_the_newer_names_of_labels_count_too() -> None:
    newer = {"nvidia.com/cuda.runtime-version.major": "12"}
    assert chosen(REQUEST, runtime_major=None, **newer).cuda == 12


def test_only_free_gpus_are_asked_for() -> None:
    pods = (pod(3), pod(2, "Succeeded"), pod(1, "Failed"), pod(8, where="gpu-2"))
    assert chosen(REQUEST, *pods).gpus == 5


def test_of_shared_gpus_one_is_asked_for() -> None:
    shared = {"nvidia.com/gpu.sharing-strategy": "time-slicing"}
    assert chosen(REQUEST, gpus=32, **shared).gpus == 1
    assert chosen(REQUEST, gpus=8, **{"nvidia.com/gpu.sharing-strategy": "none"}).gpus == 8


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"unschedulable": True}, "it is cordoned"),
        ({"gpus": 0}, "it has no free GPU"),
        ({"gpu_product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"}, "its GPUs are in parts"),
        ({"compute_major": None}, "no label nvidia.com/gpu.compute.major"),
        ({"runtime_major": None}, "verify_load_cuda is not set"),
        ({"runtime_major": "14"}, "no image for CUDA 14"),
        ({"compute_major": "7", "compute_minor": "0"}, "begins at compute capability 7.5"),
    ],
)
def test_a_node_that_cannot_be_tested_is_left_out_with_the_reason(
    about: dict[str, Any], why: str
) -> None:
    found = choose(CATALOG, REQUEST, node(**about), [])
    assert isinstance(found, LeftOut)
    assert str(found).startswith("gpu-1: ")
    assert why in found.why


def test_the_inventory_overrides() -> None:
    data = {
        "verify_load_seconds": 30,
        "verify_load_image": "registry.example/dcgm:1",
        "verify_load_cuda": 12,
        "device_plugin_runtime_class": "nvidia",
    }
    request = LoadRequest.of(data, CATALOG)
    found = chosen(request, runtime_major=None)
    assert (found.image, found.cuda) == ("registry.example/dcgm:1", 12)
    spec = job(CATALOG, found, request)["spec"]
    assert spec["template"]["spec"]["runtimeClassName"] == "nvidia"
    assert spec["template"]["spec"]["containers"][0]["command"][-1] == "30"
    assert spec["activeDeadlineSeconds"] == 600 + 60


def test_the_example_is_what_the_check_runs() -> None:
    """But for the node, which it leaves to the scheduler, one GPU, and a name."""
    found = chosen(gpus=1)
    wanted = job(CATALOG, found, REQUEST)
    wanted["metadata"] = {"name": "gpufleet-load"}
    del wanted["spec"]["template"]["spec"]["affinity"]
    del wanted["spec"]["template"]["metadata"]
    assert yaml.safe_load(EXAMPLE.read_text()) == wanted
