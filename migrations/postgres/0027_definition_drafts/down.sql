DROP TABLE definition_drafts;
-- The release before knows no authors.
UPDATE users SET role = 'member' WHERE role = 'author';
