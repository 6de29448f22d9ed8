"""Tests of certificates: their contents, their files, and their revocation."""
