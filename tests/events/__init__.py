"""The events of logins as they are read."""
