from setuptools import setup

setup()  # pyproject.toml says it all; scrapyd-client builds its egg by this file
