"""Tests that need Ray: a cluster of several nodes on this machine. `make test-ray` runs them in an environment of their own."""
