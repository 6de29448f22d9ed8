"""RADIUS clients: the senders that the listeners admit, with their secrets and domains."""
