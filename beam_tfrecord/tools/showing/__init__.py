"""Records made visible: in words (:mod:`.describe`), as JSON values (:mod:`.values`), as pictures (:mod:`.sheet`)."""
