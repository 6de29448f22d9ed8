"""The audit trail records each change with its actor and time.

Each package writes its entries in the transaction of the change (`store/audit.py`). An entry is never changed. It is
deleted after the retention time. `service` reads pages and deletes old entries. `operations` declares
/api/v1/audit/list.
"""
