"""eyas and other tools side by side: the tools, one trial of one tool, its figures, the table and the picture."""
