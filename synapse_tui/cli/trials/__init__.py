"""`synapse doctor`: runs an installed agent in a scratch folder and verifies its profile."""
