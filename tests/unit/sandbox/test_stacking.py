"""The tests of deploys report a run that times out."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.cluster.processes import Process, birth
from gpufleet_sandbox.waiting import wait_until
from tests.cluster import stacking
from tests.cluster.stacking import Bench


@pytest.mark.extended
def test_a_run_that_times_out_is_killed_with_its_children_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helm, deploys = tmp_path / "helm.pid", tmp_path / "deploys"
    deploys.mkdir()
    (deploys / "gpu_cluster.py").write_text(
        "import pathlib, subprocess\n"
        "started = subprocess.Popen(['sleep', '60'])\n"
        f"pathlib.Path({str(helm)!r}).write_text(str(started.pid))\n"
        "print('waiting for a pod', flush=True)\n"
        "started.wait()\n"
    )
    monkeypatch.setattr(stacking, "ROOT", tmp_path)
    gone = Process("kube-scheduler", 1, "never")
    bench = Bench(Cluster("none", "1.36.3", tmp_path, helm, [gone]), tmp_path, seconds=10)
    began = time.monotonic()
    with pytest.raises(pytest.fail.Exception) as caught:
        bench.deploy()
    assert time.monotonic() - began < 50  # does not wait for its helm
    assert "no longer running: kube-scheduler" in str(caught.value)
    assert "waiting for a pod" in str(caught.value)
    assert wait_until(lambda: not birth(int(helm.read_text())), 5)
