"""The live view: what a person sees of a run while it goes on, in the run's own terminal and in others."""
