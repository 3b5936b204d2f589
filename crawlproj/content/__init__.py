"""From bytes to text: one parse gives links and blocks; feeds and sitemaps give entries."""
