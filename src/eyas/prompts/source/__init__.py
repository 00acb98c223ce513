"""What a source is made of: which files it names, how they are packed, and a reader for each format in them."""
