"""The audit trail as people see it: who changed what and when, newest first, and its end.

Writing is each area's own business, in the transaction of its change (`store/audit.py`). Entries are never changed, and
go when they were kept long enough.

model      the operation's body and answer
repo       the SQL: pages, totals, what is old
service    Audit: what is asked for
retention  Retention: deletes what was kept long enough
api        /api/v1/audit/list; commands has audit.list for the command line, cli the words around it
"""
