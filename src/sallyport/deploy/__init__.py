"""The service as part of a system: its user, its settings file and its units for systemd.

systemd         the units; they name the paths of base/systemd.py
settings_file   the text of /etc/sallyport/sallyport.toml
"""
