"""HTTP/1.1 to one origin, with as little between the caller and the socket as HTTP allows."""
