"""A dataset as one archive, for carrying it about, and back."""
