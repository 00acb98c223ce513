"""Every command that the docs show: collected, checked against the program, and run in a sandbox."""
