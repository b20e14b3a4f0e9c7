// A layer that holds only headers still becomes a library.
