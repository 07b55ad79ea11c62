-- oldest reader: 4
-- Plans have stages of kind Changes, which code before this migration cannot read. The calls of such a stage were made by
-- no message of a model: their message_seq is -1, and the results begin the messages of the execution.

COMMENT ON COLUMN mcp_interaction.message_seq IS
    'sequence of the message with the call; -1: no model made it, as in a stage of kind Changes';
