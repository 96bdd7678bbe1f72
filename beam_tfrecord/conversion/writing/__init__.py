"""From entries to staged shards: records, read-ahead, files and what is counted on the way."""
