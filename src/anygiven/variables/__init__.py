"""What is modelled: domains, schema inference, tables ↔ cells, and back in the user's units."""

from anygiven.variables.domains import CELL, HIGH, LOG_WIDTH, LOW, SYMBOL, Domain
from anygiven.variables.schema import Schema, Variable, infer_schema, schema_of
from anygiven.variables.tables import Table, read_table, write_table

__all__ = [
    "CELL", "HIGH", "LOG_WIDTH", "LOW", "SYMBOL",
    "Domain", "Schema", "Table", "Variable",
    "infer_schema", "read_table", "schema_of", "write_table",
]  # fmt: skip
