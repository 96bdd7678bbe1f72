"""Every option, declared once, and the config objects that validate themselves."""
