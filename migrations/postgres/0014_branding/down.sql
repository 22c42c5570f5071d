DROP TABLE brands;
