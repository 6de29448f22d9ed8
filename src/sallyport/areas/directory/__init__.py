"""Directories: people, groups and units that other systems keep. This package imports them into the store.

A reading is one pass over a directory. It reads all entries, or only the changes since the last reading. If a reading
ends early, nothing changes in the store.

The path of one entry has four forms:

    Raw, or JSON of an API  --understand-->  Person  --prepared-->  PreparedPerson  --SQL-->  a row of directory_users
    (reading, ldif)                          (entry)                (imports.lines)           (stored)

Between two processes, a Person is the JSON of `entry.wire`: from an agent to the service, and in the file that collects
a reading. A child process reads this file, or an LDIF file, and writes a file of prepared entries.

    entry       the meaning of entries from any source: people, groups and units; LDIF and JSON
    reading     reads LDAP, Entra ID and Okta, without the store and the HTTP server; the directory agent uses it too
    runs        receives the entries that directory agents send
    schedules   the times at which the service reads a directory
    imports     background jobs that write the entries to the store; readers: a directory's reader from its settings
    stored      people, groups and memberships in the store; /ad/ lists and logins read them
    mappings    which attributes fill each field
    principals  groups and units of a principal, cached for logins
"""
