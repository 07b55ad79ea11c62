"""Measures chains and rules on the incidents of a checkout, each a set of objects with a known fault."""
