"""The machines around the GPUs, as node_exporter sees them: a row of the dashboard of nodes.

node_exporter names its target by address; `node_uname_info` says which node that is.
"""

from __future__ import annotations

from dashboards import model
from dashboards.model import Row
from dashboards.panels import lines
from dashboards.queries import EXPORTER_PODS, PER_NODE, Scope, gpu_nodes

NODE = Scope(node=True)
TARGET = "cluster, job, instance"
CLUSTER = 'cluster=~"$cluster"'
VIRTUAL = "lo|veth.*|cali.*|cilium.*|cni.*|docker.*|flannel.*|lxc.*|virbr.*"  # not the wire
PASSING = "tmpfs|ramfs|overlay|squashfs|devtmpfs"  # file systems that hold nothing to keep


def by_node(expression: str) -> str:
    """An expression per target of node_exporter, as one per node with GPUs."""
    names = f'node_uname_info{{{CLUSTER}, nodename=~"$node"}}'
    named = f"({expression}) * on ({TARGET}) group_left (nodename) {names}"
    node = f'label_replace({named}, "node", "$1", "nodename", "(.+)")'
    return f"max by ({PER_NODE}) ({node}) and on ({PER_NODE}) ({gpu_nodes(NODE)})"


def _rate(metric: str, *matchers: str) -> str:
    selector = ", ".join([*matchers, CLUSTER])
    return f"sum by ({TARGET}) (rate({metric}{{{selector}}}[$__rate_interval]))"


IDLE = (
    f'avg by ({TARGET}) (rate(node_cpu_seconds_total{{mode="idle", {CLUSTER}}}[$__rate_interval]))'
)
AVAILABLE = f"node_memory_MemAvailable_bytes{{{CLUSTER}}} / node_memory_MemTotal_bytes{{{CLUSTER}}}"
FILES = f'fstype!~"{PASSING}", {CLUSTER}'
LEFT = f"node_filesystem_avail_bytes{{{FILES}}} / node_filesystem_size_bytes{{{FILES}}}"
WIRE = f'device!~"{VIRTUAL}"'
INFINIBAND = "node_infiniband_port_data"

EXPORTER = f'container!="", container!="POD", pod=~"{EXPORTER_PODS}", {CLUSTER}, node=~"$node"'
EXPORTER_MEMORY = f"container_memory_working_set_bytes{{{EXPORTER}}}"
EXPORTER_TIME = f"rate(container_cpu_usage_seconds_total{{{EXPORTER}}}[$__rate_interval])"

MACHINE = Row(
    "Machine (node_exporter)",
    (
        lines(
            "Processors at work",
            "Share of time in which the processors were not idle.",
            (by_node(f"1 - {IDLE}"), model.REPORTING_NODE, "{{node}}"),
            unit="percentunit",
            width=8,
        ),
        lines(
            "Memory of the machine in use",
            "What programs could not have without swapping.",
            (by_node(f"1 - {AVAILABLE}"), model.REPORTING_NODE, "{{node}}"),
            unit="percentunit",
            width=8,
        ),
        lines(
            "Fullest file system",
            "Of those that keep anything.",
            (by_node(f"max by ({TARGET}) (1 - {LEFT})"), model.REPORTING_NODE, "{{node}}"),
            unit="percentunit",
            width=8,
        ),
        lines(
            "Disks",
            "Read and written, all disks together.",
            (by_node(_rate("node_disk_read_bytes_total")), model.REPORTING_NODE, "{{node}} read"),
            (
                by_node(_rate("node_disk_written_bytes_total")),
                model.REPORTING_NODE,
                "{{node}} written",
            ),
            unit="Bps",
            width=8,
        ),
        lines(
            "Ethernet",
            "All wires of a machine together.",
            (
                by_node(_rate("node_network_receive_bytes_total", WIRE)),
                model.REPORTING_NODE,
                "{{node}} received",
            ),
            (
                by_node(_rate("node_network_transmit_bytes_total", WIRE)),
                model.REPORTING_NODE,
                "{{node}} sent",
            ),
            unit="Bps",
            width=8,
        ),
        lines(
            "InfiniBand",
            "All ports of a machine together.",
            (
                by_node(_rate(f"{INFINIBAND}_received_bytes_total")),
                model.INFINIBAND_NODE,
                "{{node}} received",
            ),
            (
                by_node(_rate(f"{INFINIBAND}_transmitted_bytes_total")),
                model.INFINIBAND_NODE,
                "{{node}} sent",
            ),
            unit="Bps",
            width=8,
        ),
        lines(
            "Exporter: memory",
            "What the exporter's container uses; above its limit it is killed.",
            (f"max by ({PER_NODE}) ({EXPORTER_MEMORY})", model.EXPORTER_NODE, "{{node}}"),
            unit="bytes",
        ),
        lines(
            "Exporter: processors",
            "How many processors the exporter's container keeps busy.",
            (f"max by ({PER_NODE}) ({EXPORTER_TIME})", model.EXPORTER_NODE, "{{node}}"),
        ),
    ),
)
