def fill(
    pieces: tuple[bytes, ...],
    text: bytes,
    count: int,
    name: bytes,
    first: int | None,
    size: bytes,
    notes: tuple[bytes, bytes],
) -> list[bytes]: ...
def places(values: list[bytes]) -> bytes: ...
