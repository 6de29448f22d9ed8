"""What the service needs of its machine: systemd and its notifications, the owners of files, and atomic replacement of
files.
"""
