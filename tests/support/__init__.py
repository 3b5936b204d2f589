"""What tests share: webs, servers, whole crawls as processes, judges of what servers saw, ways to
kill and to break.
"""
