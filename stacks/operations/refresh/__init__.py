"""Live prices and offers, in a catalogue of the user's own."""
