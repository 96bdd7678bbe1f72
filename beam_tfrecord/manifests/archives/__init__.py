"""Zip and tar archives read where they lie."""
