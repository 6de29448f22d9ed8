"""Conformance tests of the HTTP operations, which call the running service."""
