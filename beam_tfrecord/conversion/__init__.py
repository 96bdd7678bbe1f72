"""From rows to written shards: entries, the plan, the writing."""
