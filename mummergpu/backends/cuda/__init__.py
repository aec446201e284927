"""The ``cuda`` backend, for trees and for tables, on the kernels in ``kernels/``."""
