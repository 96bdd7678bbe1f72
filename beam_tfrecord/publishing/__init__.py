"""From staged shards to a published dataset, and what became of a conversion."""
