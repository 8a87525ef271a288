"""Alerts, dashboards, autoscaling and node problems."""
