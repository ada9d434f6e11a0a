"""A report of a clustering as one HTML file that needs nothing else."""

from dmkc.report.advice import Command
from dmkc.report.write import write_report

__all__ = ["Command", "write_report"]
