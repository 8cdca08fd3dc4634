from engine import Columns, CountWindow

def write(
    target: dict[bytes, bytes | None],
    window: CountWindow,
    prefix: bytes,
    first_page: int,
    since: int,
    head: bytes,
) -> int: ...
def unpack(records: list[tuple[bytes, bytes]]) -> tuple[int, Columns, bytes] | None: ...
