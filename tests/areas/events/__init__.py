"""Tests of login events: reading, export, retention and outlets."""
