"""Backends: how a server is asked and how its answers are read. One file each; the transport is handed in."""
