"""Live prices and offers, in a catalogue of one's own."""
