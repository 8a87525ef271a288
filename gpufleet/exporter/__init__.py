"""The exporter of GPU metrics on a host, and its list of counters."""
