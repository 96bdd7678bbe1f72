"""The version, in the one place that the package, its metadata and the datasets it writes take it from."""

__version__ = "0.1.0"
