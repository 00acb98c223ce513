"""The engine: all of the run's concurrency. Decisions are pure (retry, pace, admit); run and attempt do the I/O."""
