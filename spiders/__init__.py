"""One file per site; `site` is the general one."""
