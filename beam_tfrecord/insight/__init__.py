"""What the pixels tell of a collection: fingerprints, near-duplicates, ruined pictures, boxes that cannot be right.

Whole numbers throughout, and no state: the same pictures give the same findings on every machine, engine and number of
workers. Nothing here reads files; what is looked at and where findings go is decided by those who call.
"""
