"""Texts of manifests: encodings, lines, dialects, JSON and XML streams, roles of columns, cells."""
