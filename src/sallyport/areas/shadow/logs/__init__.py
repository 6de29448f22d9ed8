"""Read the logs of other RADIUS servers as recorded logins, without the service.

    record      a login that a log records, and what all formats have in common
    nps         NPS: DTS-compliant (XML), IAS format and database-compatible format
    freeradius  FreeRADIUS: detail files, `radius.log` and linelog
    ise         Cisco ISE: syslog
    reading     opens files, finds the format, and decodes lines

The command line reads the files, so the service never gets them. A reader keeps a bounded number of unanswered requests
in memory, whatever the size of the file. Passwords in a log are never read into a record.
"""
