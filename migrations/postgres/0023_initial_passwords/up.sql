-- Until when the password opens something that was made for a person; without it they chose it
-- themselves, and it holds until it is changed.
ALTER TABLE users ADD COLUMN password_until timestamptz;
