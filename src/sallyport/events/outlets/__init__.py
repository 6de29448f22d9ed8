"""Outlets: the log and a SIEM, which receive decisions in addition to the store. A SIEM receives syslog or JSON lines,
and can also get the audit trail.

No login waits for an outlet. Each outlet reads the events after its last delivered event, a few hundred at a time, and
stores its position. The audit trail is read in the same way. So the store is the queue. While a SIEM is unreachable,
events wait in the store as long as they are retained (`event_days`, `event_limit_mib`, `audit_days`). Each batch is
ordered by time.

If there are several nodes, the node with the lease serves the outlets. When another node gets the lease, it continues
at the stored position. Nodes do not commit in the order of the ids. Therefore an outlet reads only up to the newest id
below which no row can appear any more (`Store.settled`). If the process ends or loses the lease before the position of
a batch is stored, the batch is sent again. So each event arrives at least once, with its eventId or auditId. In
contrast, the log of a node has only the decisions of this node.

    format     an event or an entry as a line of JSON, and as a syslog message (RFC 5424)
    transport  a setting as a target (file:, unix:, tcp:, syslog+udp:, syslog+tcp:, syslog+tls:), and its transport
    repo       events in the order in which they were written, and the positions of outlets
    service    the task of each outlet
    log        the lines in the log
"""
