-- oldest reader: 4
-- Plans have the time limits of each provider's calls and of conclusions, which code before this migration cannot read.

COMMENT ON COLUMN investigation.interrupted_model_calls IS
    'model calls whose answer never came: their worker died, or they were cut because the run was asked to conclude';
