"""RADIUS-aware network device inventory and login policy service."""
