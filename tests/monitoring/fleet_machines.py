"""Metrics of node_exporter for the fleet's machines, which differ only in InfiniBand."""

from __future__ import annotations

from collections.abc import Iterator

GIB = 2**30
Sample = tuple[str, dict[str, str], tuple[float, float]]

EXPORTER_MEMORY, EXPORTER_TIME = 400 * 2**20, 0.05  # bytes, processors
# shares and bytes per second that the dashboards must show
PROCESSORS, MEMORY, FULLEST = 0.25, 0.4, 0.9
READ, WRITTEN, RECEIVED, SENT, PORT = 5e6, 7e6, 11e6, 13e6, 17e9


def exporter(node: str) -> Iterator[Sample]:
    """Metrics of the kubelet for the exporter's pod. The pod's sandbox is a container too."""
    about = {
        "job": "kubelet",
        "node": node,
        "namespace": "monitoring",
        "pod": f"dcgm-exporter-{node}",
    }
    for container, share in (("exporter", 1.0), ("POD", 3.0), ("", 4.0)):
        labels = {**about, "container": container}
        used = share * EXPORTER_MEMORY
        yield "container_memory_working_set_bytes", labels, (used, 0)
        yield "container_cpu_usage_seconds_total", labels, (1e3, share * EXPORTER_TIME)


def machine(name: str, number: int, infiniband: bool) -> Iterator[Sample]:
    """Metric, labels, (value at the beginning, growth per second) of one machine's target."""
    target = {"job": "node-exporter", "instance": f"10.0.0.{number}:9100"}

    def reported(metric: str, value: float, growth: float = 0, **labels: str) -> Sample:
        return f"node_{metric}", {**target, **labels}, (value, growth)

    yield reported("uname_info", 1, nodename=name, release="6.1.0")
    for processor in ("0", "1"):
        yield reported("cpu_seconds_total", 1e6, 1 - PROCESSORS, cpu=processor, mode="idle")
        yield reported("cpu_seconds_total", 1e6, PROCESSORS, cpu=processor, mode="user")
    yield reported("memory_MemTotal_bytes", 2048 * GIB)
    yield reported("memory_MemAvailable_bytes", 2048 * GIB * (1 - MEMORY))
    for place, kind, used in (("/", "ext4", 0.3), ("/data", "xfs", FULLEST), ("/run", "tmpfs", 1)):
        where = {"mountpoint": place, "fstype": kind, "device": f"/dev{place}"}
        yield reported("filesystem_size_bytes", 1000 * GIB, **where)
        yield reported("filesystem_avail_bytes", 1000 * GIB * (1 - used), **where)
    for disk in ("nvme0n1", "nvme1n1"):
        yield reported("disk_read_bytes_total", 1e9, READ / 2, device=disk)
        yield reported("disk_written_bytes_total", 1e9, WRITTEN / 2, device=disk)
    for device, share in (("eth0", 0.5), ("eth1", 0.5), ("lo", 3), ("veth12", 5)):
        yield reported("network_receive_bytes_total", 1e9, RECEIVED * share, device=device)
        yield reported("network_transmit_bytes_total", 1e9, SENT * share, device=device)
    for device in ("mlx5_0", "mlx5_1") if infiniband else ():
        port = {"device": device, "port": "1"}
        yield reported("infiniband_port_data_received_bytes_total", 1e12, PORT / 2, **port)
        yield reported("infiniband_port_data_transmitted_bytes_total", 1e12, PORT / 4, **port)
