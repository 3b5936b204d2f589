"""Spiders that only tests run."""
