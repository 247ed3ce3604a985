"""The time loop of an LSTM in C, for `recurrent` and `paired` on CPUs; built with the package."""
