"""Clustering by nonparallel planes."""
