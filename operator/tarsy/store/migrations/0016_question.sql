-- oldest reader: 4
-- plans: unchanged
-- The question of a run that answers one has a column of its own. Code before this migration writes it to alert_data, and
-- reads it there, beside this version during a rolling upgrade and after a rollback. Therefore this version writes both
-- columns, and reads alert_data of a run with a parent where question is null. Existing rows are left as they are. A later
-- version, when no such code can be alive, fills question of old rows and no longer writes alert_data of questions.

ALTER TABLE investigation_input ADD COLUMN question text;
COMMENT ON COLUMN investigation_input.question IS
    'of an answer: the question; null where code before migration 16 wrote the row: then it is in alert_data';
COMMENT ON COLUMN investigation_input.alert_data IS
    'of an investigation: the alert; of an answer: a copy of the question for code before migration 16';
