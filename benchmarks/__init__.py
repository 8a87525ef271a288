"""Compare the speed of gpufleet with a lower bound and with Ansible: `make bench`."""
