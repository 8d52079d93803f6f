"""Problems that need a person: the first screen of every surface begins with them."""
