ALTER TABLE sign_ins DROP COLUMN held_form;
ALTER TABLE sign_ins DROP COLUMN by_provider;
ALTER TABLE sign_ins DROP COLUMN confirmed_at;
