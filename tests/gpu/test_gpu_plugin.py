"""The real device plugin on a real GPU, with the configuration that a cluster gives it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from gpufleet.facts.model import NodeFacts
from gpufleet.gpu_stack.node_sharing import NodeSharing, SharingMode
from gpufleet.gpu_stack.sharing_checks import config_texts

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.claim(
        "The real device plugin offers a real GPU whole, or as many times as `gpu_replicas` says.",
        level=8,
    ),
]

SOCKETS = Path("/var/lib/kubelet/device-plugins")  # the plugin's own path
REGISTER = "/v1beta1.Registration/Register"
LIST_AND_WATCH = "/v1beta1.DevicePlugin/ListAndWatch"
WHOLE = SharingMode("none", 1, "none")
SECONDS = 60


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of the texts and messages in a message of the kubelet's device API."""
    place = 0
    while place < len(message):
        number, kind = message[place] >> 3, message[place] & 7
        place += 1
        if kind == 0:  # a number or a flag, of one byte here
            place += 1
            continue
        length, shift = 0, 0
        while True:
            byte = message[place]
            length |= (byte & 127) << shift
            place, shift = place + 1, shift + 7
            if byte < 128:
                break
        yield number, message[place : place + length]
        place += length


@pytest.fixture
def grpc(facts: NodeFacts) -> Any:
    """The module, on a machine without a kubelet that has the plugin."""
    if not shutil.which("nvidia-device-plugin"):
        pytest.skip("nvidia-device-plugin is not installed here")
    if facts.kubelet or SOCKETS.exists():
        pytest.skip("a kubelet of this machine has the folder of the plugin's sockets")
    return pytest.importorskip("grpc", reason="grpcio is not installed here")


@pytest.fixture
def registered(grpc: Any) -> Iterator[Queue[dict[int, bytes]]]:
    """The registrations of plugins at a kubelet."""
    found: Queue[dict[int, bytes]] = Queue()

    def register(message: bytes, _: Any) -> bytes:
        found.put(dict(fields(message)))
        return b""

    class Kubelet(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, call: Any) -> Any:
            assert call.method == REGISTER
            return grpc.unary_unary_rpc_method_handler(register)

    SOCKETS.mkdir(parents=True)
    server = grpc.server(ThreadPoolExecutor(2), handlers=[Kubelet()])
    server.add_insecure_port(f"unix://{SOCKETS}/kubelet.sock")
    server.start()
    yield found
    server.stop(None).wait()
    shutil.rmtree(SOCKETS.parent)


def offered(grpc: Any, endpoint: str) -> list[str]:
    """The ids of the devices that a plugin lists as healthy."""
    with grpc.insecure_channel(f"unix://{SOCKETS}/{endpoint}") as channel:
        answer = next(channel.unary_stream(LIST_AND_WATCH)(b"", timeout=SECONDS))
    devices = [dict(fields(device)) for _, device in fields(answer)]
    return [device[1].decode() for device in devices if device[2] == b"Healthy"]


@pytest.mark.parametrize(
    ("mode", "times"), [(WHOLE, 1), (SharingMode("time-slicing", 4, "none"), 4)]
)
def test_the_plugin_offers_each_gpu(
    grpc: Any,
    registered: Queue[dict[int, bytes]],
    facts: NodeFacts,
    tmp_path: Path,
    mode: SharingMode,
    times: int,
) -> None:
    text = config_texts(NodeSharing(WHOLE, modes={"node": mode}))[mode.name]
    config = tmp_path / "config.yaml"
    config.write_text(text)
    process = subprocess.Popen(["nvidia-device-plugin", f"--config-file={config}"])
    try:
        found = registered.get(timeout=SECONDS)
        devices = offered(grpc, found[2].decode())
    finally:
        process.terminate()
        process.wait()
    listed = subprocess.run(
        ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout.split()  # fmt: skip
    assert len(listed) == len(facts.gpus)
    assert found[3] == b"nvidia.com/gpu"
    assert sorted(each.partition("::")[0] for each in devices) == sorted(listed * times)
    assert len(set(devices)) == len(devices) == len(listed) * times
