"""Small servers to try out and test the gateway. They import no other code of the gateway."""
