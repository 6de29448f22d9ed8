"""Schemas of credentials: what a subject must have (JSON Schema, drafts 07 and 2020-12).

A schema is somebody else's program that runs here for each credential, so `check` bounds it: its size and depth, no
references but into itself, patterns whose worst case is known, and a budget for each run.
"""
