"""Sallyport: a RADIUS-aware inventory of network devices, and a login policy service."""

__version__ = "0.1.0"
