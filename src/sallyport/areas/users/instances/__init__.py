"""Instances: the machines to which endpoint users and groups are assigned."""
