"""The frontier in memory: the twin of the real one, for tests and simulators. Nothing of a crawl
imports it.
"""
