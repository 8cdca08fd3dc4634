# Sourced by the scripts beside it: goes to the project's folder and brings .venv up to date there.
# Nothing is written outside the folder. PYTHON=... picks an interpreter.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PIP_CACHE_DIR="$PWD/.cache/pip" PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf '>> %s\n' "$*" >&2; }

# A pyenv shim may stand for a version that is not there: only running it tells.
find_python() {
    local candidate
    for candidate in ${PYTHON:-python3.13 python3.12 python3.11 python3 python}; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    say "Python 3.11, 3.12 or 3.13 is needed and ${PYTHON:-none of python3.13 ... python} is one" \
        "(on Debian: apt-get install python3 python3-venv python3-dev)."
    exit 1
}

# What an install depends on: the folder, the package's description, the sources that are compiled.
fingerprint() {
    {
        echo "$PWD"
        find pyproject.toml setup.py engine worker \( -name pyproject.toml -o -name setup.py -o -name '*.pyx' \
            -o -name '*.pxd' -o -name '*.h' \) -print0 | sort -z | xargs -0 sha256sum
    } | sha256sum
}

# environment EXTRAS: install the project, editable, with these extras, unless that is done already.
environment() {
    local extras=$1 now python stamp
    now=$(fingerprint)
    for stamp in .venv/installed-"$extras"*; do
        [[ -f $stamp && $(<"$stamp") == "$now" ]] && return
    done
    if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
        python=$(find_python)
        say "Making .venv with $("$python" --version)"
        "$python" -m venv .venv || {
            say "$python cannot make virtual environments (on Debian: apt-get install python3-venv)."
            exit 1
        }
    fi
    say "Installing rocstream[$extras] and what it needs into .venv (once: a minute or two)"
    rm -f .venv/installed-*
    .venv/bin/python -m pip install --progress-bar off --editable ".[$extras]" | told
    echo "$now" >".venv/installed-$extras"
}

# Of what pip says, tell the steps that take their time; errors are on its other output.
told() {
    local line collecting=
    while IFS= read -r line; do
        case $line in
            *"Preparing editable metadata"*started*) say "Translating the core to C" ;;
            "Collecting "*)
                [[ $collecting ]] || say "Downloading packages"
                collecting=yes
                ;;
            *"Building editable for rocstream"*started*) say "Compiling the core" ;;
            "Installing collected packages"*) say "Unpacking packages" ;;
        esac
    done
}
