DROP TABLE deployment_key;
