"""Where does the gateway remember? `sqlite` is durable, `memory` is for tests; both are the same ports."""
