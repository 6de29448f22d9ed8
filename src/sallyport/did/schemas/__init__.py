"""Schemas of credentials: the subjects that they allow (JSON Schema, drafts 07 and 2020-12).

A tenant's schema runs for each credential, so `check` bounds its size and depth and allows references within the schema
only; `patterns` bounds the cost of each match, and `keywords` charges a run to a budget.
"""
