"""What is known, what is next: one Protocol, a twin in memory and the real one on Postgres."""
