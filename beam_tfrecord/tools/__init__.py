"""What is done with finished datasets."""
