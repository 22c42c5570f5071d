DROP TABLE session_totals;
DROP TABLE session_counts;
