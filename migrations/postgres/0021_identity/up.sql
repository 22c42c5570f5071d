-- `confirmed_at` of a sign-in: when the person last confirmed who they are, beyond having signed in.
-- `held_form`, sealed: what they were about to do when they were asked to confirm.
ALTER TABLE sign_ins ADD COLUMN confirmed_at timestamptz;
ALTER TABLE sign_ins ADD COLUMN by_provider boolean NOT NULL DEFAULT false;
ALTER TABLE sign_ins ADD COLUMN held_form bytea;
