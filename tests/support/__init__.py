"""The broker, the database and the corpora that the tests run on."""
