"""Endpoint users as admins manage them: fields, secrets, lists and assignments."""
