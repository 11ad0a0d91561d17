"""Rules of Google Batch."""
