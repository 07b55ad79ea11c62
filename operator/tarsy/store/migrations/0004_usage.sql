-- What was used since when is asked over all runs.
CREATE INDEX llm_interaction_started ON llm_interaction (started_at);
