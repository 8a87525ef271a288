"""Changes single settings of JSON and TOML files; everything else in them stays."""
