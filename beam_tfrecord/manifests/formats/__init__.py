"""One module per manifest format."""
