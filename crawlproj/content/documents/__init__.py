"""Text and links of PDF, office and RTF files: read in a process of its own (`child`), which the
crawl asks through `desk`.

The files are strangers' and the libraries are big, so nothing of them is trusted: the process has
little memory and time, no files and no network, and what it says is checked like anything else that
comes from outside.
"""
