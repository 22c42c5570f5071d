DROP TABLE receivers;
