"""A GPU node as a whole: its settings, plan, preflight, record and removal."""
