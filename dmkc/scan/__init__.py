"""Passes over the rows: pure block functions, fixed sums, and the engines that run them."""
