"""The command line."""

from dmkc.cli.app import main

__all__ = ["main"]
