"""Bare machine -> GPU node: driver, container toolkit, exporter."""

from importlib import import_module

from gpufleet.host.boundary import one_host
from gpufleet.node.operations.node import current_node
from gpufleet.roles.driver.install import install
from gpufleet.roles.exporter import run as exporter

container_toolkit = import_module("gpufleet.roles.container-toolkit.configure")

with one_host():  # what goes wrong with one host stops this host alone
    node = current_node()  # settings checked, one fact gathered
    if node and node.has_gpu:
        install(node)
        container_toolkit.configure(node)
        exporter.run(node)  # where exporter_enabled asks for one
