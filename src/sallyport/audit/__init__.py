"""The audit trail: each change with its actor and time, newest first.

Each area writes its entries in the transaction of the change (`store/audit.py`). An entry never changes, and is deleted
after its retention time. `service` has pages and retention, `operations` has /api/v1/audit/list.
"""
