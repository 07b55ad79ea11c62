-- oldest reader: 4
-- plans: unchanged
-- Stages of kind Action. Plans with one have a field that older code refuses, so an older worker leaves such runs to newer
-- ones, and if there are none for 10 minutes, ends them as unreadable: it never runs such a stage as one that
-- investigates. Older code shows these stages with the kind as text.

ALTER TABLE stage ADD COLUMN word text;
COMMENT ON COLUMN stage.word IS
    'word of the model of a stage of kind Action on whether it took an action: Yes, No or Unknown; null: it gave no answer';
