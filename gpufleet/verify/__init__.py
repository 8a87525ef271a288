"""The base of the checks in tests/post_deploy: inventory, one connection per host, reports.

Nothing here imports the code that installs. Expected values come from the inventory's data and from
the record on the host; actual values come from the checks' own commands.
"""
