"""eyas against a real model behind a real server, in an environment of their own: `make test-real`."""
