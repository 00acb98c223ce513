"""What each command takes, a file for each group of `eyas --help`; nothing heavy is imported here.

The function of a declaration says what the command does; `does` names the file of eyas.cli that does it.
"""
