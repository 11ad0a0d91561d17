"""What is shown of jobs: tables of a terminal, and the report page."""
