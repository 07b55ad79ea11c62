-- oldest reader: 4
-- What a model call was sent that is no part of its agent's conversation: the summary of a result too long for it.
-- Code that does not know the column makes no such call; a tool call that waits for its summary is an open one to it.

ALTER TABLE llm_interaction ADD COLUMN request jsonb;
COMMENT ON COLUMN llm_interaction.request IS 'role and content of each message; NULL: it was sent the conversation';
