"""Finished datasets written anew with other shards, compression or names of splits, their records untouched."""
