"""The live bus: URLs in and items out through Redis. Imported only if a Redis is named."""
