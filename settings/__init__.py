"""Settings: `base` has every default, the others only what differs."""
