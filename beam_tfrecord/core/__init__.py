"""What everything shares: the frozen types between the stages, geometry, splits, texts for people."""
