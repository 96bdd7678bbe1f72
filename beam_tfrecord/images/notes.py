"""What happened to one image on its way into a record."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Notes:
    """Collects the changes (each once, in order of first mention) and the warnings of one image."""

    changes: dict[str, None] = field(default_factory=dict)
    warnings: list[tuple[str, str]] = field(default_factory=list)

    def change(self, reason: str) -> None:
        """reason: one of errors.CHANGE_REASONS."""
        self.changes[reason] = None

    def warn(self, code: str, message: str) -> None:
        """code: one of errors.WARNING_CODES."""
        self.warnings.append((code, message))
