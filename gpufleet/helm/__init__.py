"""Charts and Helm releases: chosen, planned, carried out, waited for."""
