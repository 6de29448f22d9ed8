"""Factors of people, with an authenticator in software."""
