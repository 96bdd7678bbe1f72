"""Records made visible: in words and as JSON values (:mod:`.describe`), as pictures (:mod:`.sheet`)."""
