-- The team's privacy policy, to which the applicant's page links.
ALTER TABLE brands ADD COLUMN privacy_url text;
