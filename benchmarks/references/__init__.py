"""Programs that the tool is compared with; each is a process of its own."""
