"""Data of every host in every inventory."""

from gpufleet.run.connection import nodelay_transport

ssh_paramiko_connect_kwargs = {"transport_factory": nodelay_transport}
