"""The events of logins as they are read: the log, what leaves by an outlet, and their end.

`login.journal` writes an event with each decision. `repo` and `service` read them by page and by cursor for the
interface, the command line and the export. `retention` deletes those that are too old or take too much room.
`outlets` sends them to the log and to a SIEM.
"""
