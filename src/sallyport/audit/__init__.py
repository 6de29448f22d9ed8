"""The audit trail records each change with its actor and time.

Each package writes its entries in the transaction of the change (`store/audit.py`). An entry never changes. It is
deleted after the retention time. `service` reads pages and applies the retention time; `operations` has
/api/v1/audit/list.
"""
