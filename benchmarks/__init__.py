"""How fast gpufleet is, beside a floor and beside Ansible: `make bench`."""
