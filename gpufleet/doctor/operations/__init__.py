"""Fixes of the doctor on hosts and in clusters."""
