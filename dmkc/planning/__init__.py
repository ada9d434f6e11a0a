"""What a fit will take, from fits of some of its rows."""

from dmkc.planning.plan import Plan, plan

__all__ = ["Plan", "plan"]
