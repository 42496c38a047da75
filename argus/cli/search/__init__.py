"""What `argus optimize`, `argus kb` and `argus report` show of a search."""
