"""Tests of the service under hostile input, crashes and full disks."""
