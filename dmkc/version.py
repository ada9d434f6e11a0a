"""The version, where everything can import it without importing everything."""

__version__ = "0.1.0"
