"""One running worker: what is handed out next, and the thread that talks to the database."""
