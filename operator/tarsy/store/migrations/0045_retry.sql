-- oldest reader: 4
-- plans: unchanged
-- Which investigation a run reruns, so that each of the two names the other. Code before this migration writes none.

ALTER TABLE investigation_input ADD COLUMN retry_of uuid;
COMMENT ON COLUMN investigation_input.retry_of IS
    'the investigation that the run reruns; null: none, its record was gone, or accepted before migration 45';
CREATE INDEX investigation_input_retry_of ON investigation_input (retry_of) WHERE retry_of IS NOT NULL;
