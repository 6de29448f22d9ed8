"""RADIUS clients: who may speak to the listeners, with which secret, for which domains."""
