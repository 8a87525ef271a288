"""Changes the drivers of a fleet in use: plan, states, record, and the steps on hosts."""
