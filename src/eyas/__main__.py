"""`python -m eyas`: the same as the command `eyas`."""

from eyas.cli import main

if __name__ == "__main__":
    main()
