from worker.events._block import Block
from worker.events.filling import Filling
from worker.events.plain import Layout

class Scanner:
    def __init__(
        self,
        names: Layout,
        classes: dict[str, int],
        factor: int,
        divisor: int,
        max_ahead: int,
    ) -> None: ...
    def take(self, block: Block, at: int, index: int, filling: Filling) -> tuple[int, int]: ...
