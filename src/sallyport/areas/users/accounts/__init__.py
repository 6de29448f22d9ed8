"""The management of endpoint users by admins: fields, secrets, lists and assignments."""
