"""Directories: people, groups and units that other systems keep. This package imports them into the store.

A reading is one pass over a directory. It reads all entries, or only the changes since the last reading. If a reading
ends early, nothing changes in the store.

    reading, ldif, runs --Batch of Entry--> imports --> entries --> /ad/ lists, principals --> logins

    dn          distinguished names: their parts, and the form in which they are compared (RFC 4514)
    descriptions  attribute names with options (RFC 4512), and what each option means
    status      the status of an account, in the directories of several products
    entry       the entries of any source, interpreted as people, groups and units
    ldif        LDIF files (RFC 2849)
    wire        entries as JSON: between an agent and the service, and on disk
    reading     reads LDAP, Entra ID and Okta, without the store and the HTTP server; the directory agent uses it too
    readers     creates the reader of a directory from the directory's settings
    runs        receives the entries that directory agents send
    schedules   the times at which the service reads a directory
    imports     background jobs that write the entries to the store
    entries     people, groups and memberships in the store
    mappings    which attributes fill each field; the attributes in `secret_attributes` never do
    health      whether the imports of a directory work
    principals  groups and units of a principal, cached for logins

dn, descriptions, status, entry, ldif and wire use neither the store, the HTTP server nor trio.
"""
