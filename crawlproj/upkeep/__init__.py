"""Work on a whole database and its archive: take-down, retention, import."""
