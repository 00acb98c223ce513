"""The parts of the page, one subject a file, and what they are made of: markup, words, tables, bars."""
