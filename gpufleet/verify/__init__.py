"""The base of the checks in tests/post_deploy: the inventory, one connection per host, reports.

Nothing here imports the code that installs: what is expected comes from the inventory's data and
from the record on the host, what is there from commands of its own.
"""
