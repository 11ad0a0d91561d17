"""Stand-in for pulumi-gcp: types and functions as tables over Google's REST APIs."""
