"""The steps of an upgrade on hosts, and the run that executes them."""
