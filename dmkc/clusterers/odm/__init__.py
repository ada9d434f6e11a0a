"""Margin-distribution clustering, with constraints or without."""
