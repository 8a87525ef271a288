"""Requests to the API server that cordon, taint, drain, check and return nodes."""
