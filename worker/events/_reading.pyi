MOST_TEXTS: int
"""Texts of labels at the most."""

MOST_PARTS: int
"""Parts of a path at the most."""
