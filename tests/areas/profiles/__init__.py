"""Profiles of networks: their files, and the programs that read them."""
