"""Fits that can be killed at any instant and continued."""

from dmkc.resume.engine import checkpoint, is_recording
from dmkc.resume.journal import CheckpointError, Journal

__all__ = ["CheckpointError", "Journal", "checkpoint", "is_recording"]
