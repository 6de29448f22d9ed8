"""Outlets for decisions in addition to the store: a line in the log, and a SIEM, by syslog or as JSON lines. A SIEM can
get the audit trail too.

No login waits for an outlet. Each outlet reads the next events after its last delivered one, a few hundred at a time,
and stores its position. It does the same for the audit trail. So the store is the queue: while a SIEM is unreachable,
events wait there as long as they are retained (`event_days`, `event_limit_mib`, `audit_days`). Each batch is ordered by
time.

Of several nodes, the one with the lease serves the outlets, and any node continues at the stored position. Nodes do not
commit in the order of their ids, so an outlet reads up to the newest id below which no row can appear
(`Store.settled`). A batch whose position was not stored when the process ended or lost the lease is sent again: each
event arrives at least once, with its eventId or auditId. The log, in contrast, has the decisions of its own node.

    format     an event or an entry as a line of JSON, and as a syslog message (RFC 5424)
    transport  a setting as a target (file:, unix:, tcp:, syslog+udp:, syslog+tcp:, syslog+tls:), and its transport
    repo       events in the order in which they were written, and the positions of outlets
    service    the task of each outlet
    log        the lines in the log
"""
