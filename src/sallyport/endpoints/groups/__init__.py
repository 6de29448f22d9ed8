"""Endpoint groups: users together, the instances they are assigned to, and the policy of their sessions."""
