"""Providers: the endpoint list, what precision each serves, and which of them may answer."""
