-- The trace of a login that has waited for another system, and the request that has made a change: the X-Request-Id of its
-- answer, or the trace id of the login that has caused the change.

alter table events add column trace_id text;
alter table audit_trail add column request_id text;
