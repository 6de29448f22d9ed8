"""Certificates: what they say, where they lie, who takes them."""
