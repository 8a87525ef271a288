"""Charts and Helm releases: version choice, plan, installation, readiness."""
