"""What is decided before the first record is written: survey, plan, and the shard and place of every entry."""
