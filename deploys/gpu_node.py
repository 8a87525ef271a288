"""Bare machine -> GPU node: driver, container toolkit, exporter."""

from importlib import import_module

from gpufleet.host.boundary import one_host
from gpufleet.node.operations.node import current_node
from gpufleet.roles.driver.install import install
from gpufleet.roles.exporter import run as exporter

container_toolkit = import_module("gpufleet.roles.container-toolkit.configure")

with one_host():  # a problem of one host stops only this host
    node = current_node()  # settings validated, one fact gathered
    if node and node.has_gpu:
        install(node)
        container_toolkit.configure(node)
        exporter.run(node)  # only with exporter_enabled
