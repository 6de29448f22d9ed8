"""The events of logins. An event records a login and its decision.

`login.journal` writes an event with each decision. `repo` and `service` read events by page and by cursor, for the API,
the command line and the export. `hours` counts the logins of each hour. `retention` deletes events that are too old or
take too much space. `outlets` sends events to the log and to a SIEM.
"""
