"""The way back: from the records of a dataset to images, and a manifest that converts to the same records again."""
