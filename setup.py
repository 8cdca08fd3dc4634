"""Build of the compiled core of `engine` and `worker`; everything else stands in pyproject.toml.

The core is optional: without a C compiler the package installs all the same and runs its plain
Python twin. ROCSTREAM_BUILD=required makes that an error. ROCSTREAM_CFLAGS adds flags, for
example -march=native where the build runs on the machine it is for. In a checkout:
`python setup.py build_ext --inplace`.
"""

import os
import platform
import sys

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

MODULES = (
    "engine._ratio",
    "engine._pool",
    "engine._leaf",
    "engine._inner",
    "engine._nodes",
    "engine._balance",
    "engine._tree",
    "engine._tree_check",
    "engine._sort",
    "engine._build",
    "engine._query",
    "engine._outline",
    "engine._pairs",
    "engine._batch",
    "engine._severity",
    "engine._hull",
    "engine._edges",
    "engine._weighted",
    "engine._roc",
    "engine._ring",
    "engine._window",
    "engine._fold",
    "engine._products",
    "engine._ordinal",
    "engine._ordinal_window",
    "engine._timeline",
    "engine._strays",
    "engine._reader",
    "engine._bulk",
    "engine._corners",
    "engine._weights",
    "engine._decay",
    "engine._time",
    "worker._pages",
    "worker._updates",
    "worker.events._block",
    "worker.events._columns",
    "worker.events._decimal",
    "worker.events._json",
    "worker.events._reading",
    "worker.events._scan",
    "worker.transport._batches",
)

DIRECTIVES = {
    "language_level": 3,
    "cdivision": True,
    "embedsignature": True,
    "embedsignature.format": "python",
}


def compile_flags() -> list[str]:
    """Return flags of the C compiler: speed, but never at the price of a rounding.

    Contracted multiply-adds would let one expression round in two ways in two places, and equal
    windows must give equal bits.
    """
    if sys.platform == "win32":
        return ["/O2", "/fp:precise"]
    # Python's own flags ask for debugging symbols, which take a quarter of the compiler's time.
    flags = ["-O3", "-g0", "-ffp-contract=off", "-fno-math-errno", "-Wno-sign-compare"]
    if platform.machine().lower() in {"x86_64", "amd64"}:
        flags.append("-march=x86-64-v2")  # popcount; every machine since 2009 has it
    return flags + os.environ.get("ROCSTREAM_CFLAGS", "").split()


# Each takes some hundred megabytes.
_AT_ONCE = 8


class OptionalBuild(build_ext):
    """Compile the core, or say why it is missing and go on."""

    def finalize_options(self) -> None:
        """Compile as many files at once as there are processors, unless -j says otherwise."""
        super().finalize_options()
        if self.parallel is None:
            self.parallel = min(os.cpu_count() or 1, _AT_ONCE)

    def run(self) -> None:
        """Build all extensions; without a working compiler none."""
        try:
            super().run()
        except (BaseError, CCompilerError, OSError) as error:
            if os.environ.get("ROCSTREAM_BUILD") == "required":
                raise
            self.warn(f"rocstream installs without its compiled core: {error}")
            self.extensions = []


setup(
    cmdclass={"build_ext": OptionalBuild},
    ext_modules=cythonize(
        [
            Extension(
                name,
                [f"{name.replace('.', '/')}.pyx"],
                extra_compile_args=compile_flags(),
            )
            for name in MODULES
        ],
        build_dir="build/cython",
        compiler_directives=DIRECTIVES,
    ),
)
