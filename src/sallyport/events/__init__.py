"""The events of logins for their readers: the log of logins, the outlets, and retention.

`login.journal` writes an event with each decision. `repo` and `service` read them by page and by cursor for the
interface, the command line and the export. `retention` deletes events that are too old or take too much space.
`outlets` sends them to the log and to a SIEM.
"""
