"""Cloud TPU: nodes and queued resources."""
