from worker.events._block import Block
from worker.events.filling import Filling

class Scanner:
    def __init__(
        self,
        paths: tuple[tuple[str, ...] | None, ...],
        classes: dict[str, int],
        factor: int,
        divisor: int,
        max_ahead: int,
    ) -> None: ...
    def take(self, block: Block, at: int, index: int, filling: Filling) -> tuple[int, int]: ...
