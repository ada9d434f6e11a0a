"""Choosing without labels: criteria on a sample of the rows, combined by ranks.

`dmkc.select` is `run.select`; the number of clusters (`number`) is chosen by the estimators.
"""
