"""What of the inputs is taken: rows, labels and objects that options choose, and a sample of what they leave."""
