-- oldest reader: 4
-- Plans declare how far their tool servers reach. Workers of versions before do not know that, and leave such runs alone.

COMMENT ON COLUMN investigation_input.plan IS
    'canonical JSON as text, byte for byte: plan_hash is its SHA-256; tool servers have a reach since version 13';
