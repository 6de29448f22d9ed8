"""The installation of the service on a machine: its user, settings file, data directory, and units for systemd.

The paths and names are in base/systemd.py, since every command looks there for the installation. Programs that systemd
does not start (a container, a Debian package) use the same ones.

systemd         the units, with the program in /opt/sallyport
units           the text of each unit, and of the drop-ins that the settings need
settings_file   the text of /etc/sallyport/sallyport.toml
account         the service's user, and what it can run and read
install         the steps of `server install`
uninstall       the steps of `server uninstall`
cli             both commands
"""
