"""A spider's parsing run again on the archive, without the network."""
