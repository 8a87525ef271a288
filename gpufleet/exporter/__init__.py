"""The exporter of GPU metrics on a host, and the list of counters that it reads."""
