"""Cases from public reports, run in promtool against the shipped rules and queries."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from dashboards.queries import PER_POD, Scope, gpu, workload, workload_power
from gpufleet.monitoring.alert_models import load_alerts
from gpufleet.monitoring.alert_rules import rule_groups
from gpufleet.monitoring.autoscaling_models import load_autoscaling
from gpufleet.monitoring.autoscaling_rules import metric_query
from gpufleet.upgrade.operations.alert_gate import QUERY
from gpufleet_sandbox.debian import debian_program

GPU = 'gpu="0", UUID="GPU-1", device="nvidia0", modelName="M", Hostname="n1"'
POD = 'exported_namespace="ml", exported_pod="serve-{}"'
OWN = 'namespace="monitoring", pod="dcgm-exporter-x", instance="192.0.2.9:9400"'
SERIES = dict[str, str]


def differing(
    folder: Path, series: SERIES, expected: dict[str, dict[str, float]], at: str = "60m"
) -> str:
    """The differences from `expected` (query -> labels -> value) that promtool reports, or ""."""
    tests = [
        {
            "expr": expression.replace("$cluster", ".*"),
            "eval_time": at,
            "exp_samples": [
                {"labels": f"{{{labels}}}", "value": value} for labels, value in answers.items()
            ],
        }
        for expression, answers in expected.items()
    ]
    given = [{"series": name, "values": text} for name, text in series.items()]
    test = {"interval": "1m", "input_series": given, "promql_expr_test": tests}
    (folder / "rules.yaml").write_text(json.dumps({"groups": rule_groups(load_alerts())}))
    suite = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
    (folder / "tests.yaml").write_text(json.dumps(suite))
    done = subprocess.run(
        [debian_program("prometheus", "promtool"), "test", "rules", "tests.yaml"],
        cwd=folder, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    return "" if done.returncode == 0 else done.stdout + done.stderr


def scraped_twice(field: str, value: int, pods: int = 1) -> SERIES:
    """By the ServiceMonitor, which sets `node`, and by a job of annotations."""
    return {
        f'{field}{{{GPU}, job="{job}", {more}{OWN}, {POD.format(number)}}}': f"{value}x90"
        for job, more in (("dcgm-exporter", 'node="n1", '), ("kubernetes-pods", ""))
        for number in range(pods)
    }


def test_an_upgrade_does_not_wait_for_what_it_causes(tmp_path: Path) -> None:
    """kured's --prometheus-url practice: two driver versions for hours, and an idle notebook."""
    old, new = '"580.159.03"', '"580.178.04"'
    temperature = 'DCGM_FI_DEV_GPU_TEMP{{UUID="{0}", node="{0}", DCGM_FI_DRIVER_VERSION={1}}}'
    pods = 'exported_namespace="ml", exported_pod="notebook-0"'
    waiting = 'namespace="ml", pod="next-0"'
    series = {
        temperature.format("n1", old): "40x200",
        temperature.format("n2", new): "40x200",
        f'DCGM_FI_DEV_GPU_UTIL{{UUID="n2", node="n2", {pods}}}': "0x200",
        f"kube_pod_status_unschedulable{{{waiting}}}": "1x200",
        f'kube_pod_container_resource_requests{{{waiting}, resource="nvidia_com_gpu"}}': "1x200",
    }
    expected: dict[str, dict[str, float]] = {
        'count by (alertname) (ALERTS{alertstate="firing"})': {
            'alertname="GpuDriverVersionsDiffer"': 1,
            'alertname="GpuIdle"': 1,
            'alertname="GpuPodsWaiting"': 1,
        },
        QUERY: {},
    }
    assert differing(tmp_path, series, expected, "180m") == ""


@pytest.mark.parametrize("pods", [1, 3])
def test_a_gpu_that_is_scraped_twice_counts_once(pods: int, tmp_path: Path) -> None:
    series = scraped_twice("DCGM_FI_DEV_FB_USED", 40000, pods)
    catalog = load_autoscaling()
    [memory] = [each for each in catalog.metrics if each.name == "gpu_memory_used_bytes"]
    names = [f"serve-{number}" for number in range(pods)]
    matchers, used = 'exported_namespace="ml"', "DCGM_FI_DEV_FB_USED"
    expected = {
        metric_query(memory, memory.over, matchers, "exported_pod"): {
            f'exported_pod="{name}"': 40000 * 2**20 for name in names
        },
        metric_query(memory, memory.namespace, matchers): {"": 40000 * 2**20},
        gpu(used, Scope(), how="sum"): {'node="n1", gpu="0"': 40000},
        workload(used, Scope(), PER_POD, "sum"): {
            f'namespace="ml", pod="{name}"': 40000 for name in names
        },
    }
    assert differing(tmp_path, series, expected) == ""


def test_pods_that_share_a_gpu_share_its_power(tmp_path: Path) -> None:
    """https://github.com/NVIDIA/dcgm-exporter/issues/582: every pod shows the whole power."""
    series = scraped_twice("DCGM_FI_DEV_POWER_USAGE", 300, pods=3)
    labels = 'node="n1", gpu="0", namespace="ml", pod="serve-{}"'
    expected = {
        workload_power(Scope()): {labels.format(number): 100 for number in range(3)},
        f"sum({workload_power(Scope())})": {"": 300},
    }
    assert differing(tmp_path, series, expected) == ""
