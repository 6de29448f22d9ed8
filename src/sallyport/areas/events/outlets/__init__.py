"""Outlets receive decisions in addition to the store. The outlets are the log and a SIEM. A SIEM receives syslog or
JSON lines, and can also get the audit trail.

No login waits for an outlet. Each outlet reads the events after the last event that it has delivered, a few hundred at
a time, and stores its position. The audit trail is read in the same way. So the store serves as the queue. While a SIEM
is unreachable, events wait in the store until retention deletes them (`event_days`, `event_limit_mib`, `audit_days`).
The events that are sent together are ordered by time.

If there are several nodes, the node with the lease serves the outlets. When another node gets the lease, that node
continues at the stored position. Nodes do not commit in the order of the ids. Therefore an outlet reads only up to the
newest id below which no new row can appear (`Store.settled`). If the process ends or loses the lease before the new
position is stored, the same events are sent again. So each event arrives at least once; its eventId or auditId shows a
repetition. In contrast, the log of a node contains only the decisions of this node.

    format     an event or an entry as a line of JSON, and as a syslog message (RFC 5424)
    transport  a setting as a target (file:, unix:, tcp:, syslog+udp:, syslog+tcp:, syslog+tls:), and its transport
    repo       events in the order in which they were written, and the positions of outlets
    service    the task of each outlet
    log        the lines in the log
"""
