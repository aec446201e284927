"""The ``cpu`` backend, for trees and for tables, compiled by numba."""
