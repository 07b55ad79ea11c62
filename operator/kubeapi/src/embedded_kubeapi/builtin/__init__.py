"""The built-in kinds: which there are (`catalog`), their tables (`columns`), what is each kind's own (`strategies`)."""
