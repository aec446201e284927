"""What mummergpu compiles at its first runs: it looks here where its own caches have nothing."""
