"""The serving layer of hybrid linear-attention models (KDA + MLA) in pure Python and NumPy."""

__version__ = "0.1.0"
