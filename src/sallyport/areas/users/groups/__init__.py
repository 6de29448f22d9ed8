"""Endpoint groups: groups of users, their instances, and the credential policy of their sessions."""
