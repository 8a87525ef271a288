"""A read-only registry of container images, as files that the mirror serves.

The layout is that of the registry's API below /v2/, so that a static server answers pulls:
NAME/manifests/TAG, NAME/manifests/DIGEST and NAME/blobs/DIGEST.
"""
