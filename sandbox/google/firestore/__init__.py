"""Firestore: databases and documents."""
