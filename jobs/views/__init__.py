"""Views of jobs: tables in a terminal, and the report page."""
