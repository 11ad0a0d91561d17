"""A page about one job from its platform, its log and the prices, as one HTML file that needs nothing else. Functions
take plain values and return text, without a clock or a network, so that the same values give the same page."""
