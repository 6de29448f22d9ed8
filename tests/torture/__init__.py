"""Hostile input, crashes, full disks."""
