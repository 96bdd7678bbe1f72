"""Whole-process measurements of this tool beside what people use today. ``make bench`` runs them."""
