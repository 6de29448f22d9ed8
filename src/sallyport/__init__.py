"""RADIUS-aware network device inventory and login policy service."""

__version__ = "0.1.0"
