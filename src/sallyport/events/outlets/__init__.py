"""Where decisions on logins go beside the store: a line in the log, and a SIEM, as syslog or as JSON lines. A SIEM gets
the audit trail too.

Nothing of it is on the way of a login. Each outlet reads the events behind the last one that it delivered, a few
hundred at a time, and remembers how far it came; and the same for the entries of the audit trail. So these are the
queues on disk: while a SIEM is away they wait there, for as long as they are kept (`event_days`, `event_limit_mib`,
`audit_days`), and it gets them when it is back. What is read together is told in the order of its time. What was sent
and not yet remembered when the process ended is sent once more: everything arrives at least once, with its eventId or
auditId.

model      where to: file:, unix:, tcp:, syslog+udp:, syslog+tcp:, syslog+tls:
format     either as a line of JSON, and as a syslog message (RFC 5424)
transport  a file, a stream, datagrams
repo       events in the order in which they were written, and how far each outlet is with what
service    the tasks
"""
