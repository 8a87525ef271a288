"""Shared by every room: findings, data files, settings, versions, texts."""
