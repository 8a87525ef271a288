"""Drivers of a fleet at work: plan, states, record, and the steps on hosts."""
