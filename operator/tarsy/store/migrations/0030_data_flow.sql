-- oldest reader: 4
-- Plans declare what may leave through the tools of a server, and which results agents get as values instead of text.
-- Workers of versions before do not know that, and leave such runs alone.

COMMENT ON COLUMN mcp_interaction.integrity IS
    'class of the result (K, A, X), spans of class K in it, whether it is a state, whether its text must not leave '
    '(tarsy.record.integrity); null: class A';
