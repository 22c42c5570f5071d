DROP TABLE join_codes;
DROP TABLE session_devices;
