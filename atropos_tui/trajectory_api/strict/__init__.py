"""Upstream's exact behaviour, for comparisons."""
