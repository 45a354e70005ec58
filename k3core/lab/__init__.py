"""The experiments behind the tabs: parameters in, plain data out (`contract`), one module per tab (`registry`)."""
