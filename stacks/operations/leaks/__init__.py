"""What costs money or quota and serves nobody."""
