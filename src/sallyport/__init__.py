"""Sallyport: a RADIUS server for the second factor of network logins, with an inventory of the devices that use it."""

__version__ = "0.1.0"
