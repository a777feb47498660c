"""The wire: names of topics and headers, and the models of every value."""
