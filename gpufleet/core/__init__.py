"""Code that every room uses: findings, data files, settings, versions, texts."""
