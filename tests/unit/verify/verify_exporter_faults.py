"""Faults of the exporter on a host, and the one check that must find each."""

from __future__ import annotations

from verify_faults import Fault, both, replaces, service, sets, wanted

EXPORTER_FAULTS: dict[str, tuple[Fault, dict[str, str]]] = {
    "host engine stopped": (
        service("nvidia-dcgm", "ActiveState", "failed"), {"exporter_service": "GF750"},
    ),
    "exporter not enabled": (
        service("nvidia-dcgm-exporter", "UnitFileState", "disabled"),
        {"exporter_service": "GF750"},
    ),
    "no exporter though one is wanted": (
        both(wanted(exporter_enabled=True), lambda fake_host: fake_host.provenance.pop("exporter")),
        {"exporter_service": "GF750"},
    ),
    "no metrics of a GPU": (
        replaces("metrics", "DCGM_FI_DEV_GPU_TEMP GPU-2\n", ""), {"exporter_metrics": "GF786"},
    ),
    "no metrics at all": (
        sets("metrics", "curl: (7) Failed to connect", 7), {"exporter_metrics": "GF786"},
    ),
    "exporter of another version": (
        sets("exporter-version", "DCGM Exporter version 4.5.3-4.8.2"),
        {"exporter_version": "GF720"},
    ),
    "exporter not as wanted": (wanted(exporter_version="4.8.2"), {"exporter_version": "GF720"}),
    "exporter open to the network": (
        replaces("listening", "0100007F:24B8", "00000000:24B8"), {"exporter_listens": "GF788"},
    ),
    "exporter at two addresses": (
        replaces("listening", "0100007F:24B8", "0100007F:24B8\n0400000A:24B8"),
        {"exporter_listens": "GF788"},
    ),
    "exporter closed though it should not be": (
        wanted(exporter_listen="0.0.0.0"), {"exporter_listens": "GF788"},
    ),
    "DCGM of another version": (
        replaces("dpkg", "1:4.6.0-1", "1:4.5.3-1"), {"exporter_packages": "GF720"},
    ),
    "DCGM not held": (
        replaces("dpkg", "1:4.6.0-1\tamd64\thold", "1:4.6.0-1\tamd64\tinstall"),
        {"exporter_packages": "GF720"},
    ),
}  # fmt: skip
