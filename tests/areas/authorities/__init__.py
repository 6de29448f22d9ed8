"""Tests of authorities."""
