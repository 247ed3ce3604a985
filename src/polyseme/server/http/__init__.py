"""The HTTP side of the server: protocol, requests, responses, limits, pages."""
