"""Endpoint users as admins manage them: what is said of them, their secrets, and what they are assigned to."""
