"""`gpufleet verify` where a cluster's API does not answer: one failure says why, the rest is
skipped with it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def checks(folder: Path, kubeconfig: Path) -> dict[str, dict[str, str]]:
    """`gpufleet verify` of one cluster: check -> its result."""
    inventory, found = folder / "inventory.py", folder / "found.json"
    inventory.write_text(f"gpu_cluster = (['@local'], {{'cluster_kubeconfig': '{kubeconfig}'}})\n")
    subprocess.run(
        [Path(sys.executable).with_name("gpufleet"), "verify", inventory, "--json", found],
        cwd=ROOT,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return dict(json.loads(found.read_text())["hosts"]["@local"]["checks"])


class Hanging(threading.Thread):
    """A server that takes every connection and ends it at once; how many there were."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.taken = 0

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return  # closed: the test is over
            self.taken += 1
            connection.close()


@pytest.mark.parametrize("what", ["server", "kubeconfig"])
def test_the_cause_fails_once_and_the_rest_is_skipped(what: str, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    server = Hanging()
    server.start()
    url = f"https://127.0.0.1:{server.listening.getsockname()[1]}"
    config = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "users": [{"name": "c", "user": {"token": "of-the-test"}}],
    }
    if what == "server":
        kubeconfig.write_text(json.dumps(config))
    found = checks(tmp_path, kubeconfig)
    server.listening.close()
    assert server.taken == (1 if what == "server" else 0), "asked again, although nobody answers"
    failed = {name: result for name, result in found.items() if result["outcome"] != "skipped"}
    assert len(failed) == 1
    (result,) = failed.values()
    assert (result["outcome"], result["code"]) == ("failed", "GF790")
    assert what == "server" or "there is none" in result["message"]
    assert "\n" not in result["message"]
    assert "object at 0x" not in result["message"]
    because = [name for name, result in found.items() if "GF790" in result["message"]]
    assert len(because) >= 10
