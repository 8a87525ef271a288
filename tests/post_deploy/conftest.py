"""pytest tests/post_deploy --inventory inventories/prod.py [--limit HOST|GROUP]… [--json FILE]"""

pytest_plugins = ("gpufleet.verify.plugin",)
