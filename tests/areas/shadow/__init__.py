"""Tests of shadow mode, with log files of a fictitious company."""
