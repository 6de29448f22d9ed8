"""Tests of revocation, against lists and responses of authorities that the tests make."""
