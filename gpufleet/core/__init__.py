"""What every room stands on: findings, data files, settings, versions, texts. No subject."""
