"""The network: download handler, what went over the wire, names to addresses, answers as Pages."""
