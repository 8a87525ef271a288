"""Alerts, dashboards, autoscaling and node problems: what the metrics are for."""
