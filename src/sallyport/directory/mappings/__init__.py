"""Mappings: which attribute of a directory becomes which field of a person."""
