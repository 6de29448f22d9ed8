"""Directories: the people, groups and units that other systems keep, and how they come to be known here.

    dn        distinguished names: their parts, and one form for comparison (RFC 4514)
    entry     what an entry means, wherever it comes from: a person, a group, a unit; and what a reading tells

Both are pure: no store, no web, no trio. Readers (LDAP, LDIF, cloud directories, an agent) make entries of what they
find; who applies them need not know where they come from.
"""
