"""Questions people ask: status, explain, plan, versions. Reads only."""
