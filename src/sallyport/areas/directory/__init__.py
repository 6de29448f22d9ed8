"""Directories: people, groups and units that other systems keep. This package imports them into the store.

A reading is one pass over a directory. It reads all entries, or only the changes since the last reading. If a reading
ends early, nothing changes in the store.

    reading, files, runs --Batch of Entry--> imports --> entries --> /ad/ lists, principals --> logins

    entry       the meaning of entries from any source: people, groups and units; LDIF and JSON
    reading     reads LDAP, Entra ID and Okta, without the store and the HTTP server; the directory agent uses it too
    runs        receives the entries that directory agents send
    schedules   the times at which the service reads a directory
    imports     background jobs that write the entries to the store; readers: a directory's reader from its settings
    entries     people, groups and memberships in the store
    mappings    which attributes fill each field
    principals  groups and units of a principal, cached for logins
"""
