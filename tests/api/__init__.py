"""Conformance of the HTTP operations, each against the running service."""
