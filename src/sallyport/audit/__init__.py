"""The audit trail: each change with its actor and time, newest first.

Each area writes its entries in the transaction of the change (`store/audit.py`). An entry never changes, and is deleted
when its time is over. `service` has the readers and the retention, `operations` /api/v1/audit/list.
"""
