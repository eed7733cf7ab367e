"""`synapse doctor`: runs an installed agent in a scratch folder and proves that its profile describes it."""
