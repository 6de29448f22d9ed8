"""Instances: the machines that endpoint users and groups are assigned to."""
