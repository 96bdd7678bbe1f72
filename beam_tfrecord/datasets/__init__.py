"""Datasets (and other TFRecords) as they lie on disk: files, facts, records."""
