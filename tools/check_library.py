"""Find what keeps a shared library (ELF) from being loaded on its target.

    python tools/check_library.py build/android-arm64/libclgpu_delegate.so --machine aarch64 \
        --needed libc.so,libdl.so,libm.so,liblog.so --exports src_cpp/cmake/exports.map

Every finding is one sentence on standard output; the exit code is 1 when there is one. Needs
pyelftools.
"""

from __future__ import annotations

import argparse
import fnmatch
import re
import sys
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

MACHINES = {"aarch64": "EM_AARCH64", "x86_64": "EM_X86_64"}
# Versions of glibc without a number, and the release that introduced them.
UNNUMBERED = {"GLIBC_ABI_DT_RELR": (2, 36)}


def main() -> int:
    arguments = parse()
    findings = []
    for path in arguments.path:
        try:
            with path.open("rb") as file:
                findings += [f"{path} {finding}" for finding in check(ELFFile(file), arguments)]
        except (OSError, ELFError) as error:
            findings.append(f"{path} cannot be read as a shared library: {error}.")
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="+", type=Path, help="the library")
    parser.add_argument("--machine", choices=sorted(MACHINES), help="the machine it is for")
    parser.add_argument("--needed", type=names, metavar="A,B", help="libraries it may need")
    parser.add_argument("--exports", type=Path, help="linker map with all that it exports")
    parser.add_argument(
        "--glibc", type=version, metavar="2.27", help="the newest GLIBC_ version it may need"
    )
    parser.add_argument(
        "--alignment", type=lambda text: int(text, 0), default=0x4000, metavar="BYTES",
        help="that its segments have at least; 0x4000, the largest page of devices",
    )  # fmt: skip
    return parser.parse_args()


def check(elf, arguments):
    """Yield each finding as the rest of a sentence that begins with the library's path."""
    if elf["e_type"] != "ET_DYN":
        yield "is no shared library."
        return
    if arguments.machine and elf["e_machine"] != MACHINES[arguments.machine]:
        yield f"is for {elf.get_machine_arch()}, not for {arguments.machine}."
    if arguments.needed is not None:
        for name in needed(elf):
            if name not in arguments.needed:
                yield f"needs {name}; it may need {', '.join(arguments.needed)} only."
    if arguments.exports:
        yield from check_exports(exported(elf), arguments.exports)
    if arguments.glibc:
        for number, name, symbol in glibc_versions(elf):
            if number > arguments.glibc:
                limit = ".".join(map(str, arguments.glibc))
                yield f"needs {name}{symbol}, newer than glibc {limit}."
    for segment in elf.iter_segments("PT_LOAD"):
        if segment["p_align"] < arguments.alignment:
            yield (
                f"has a LOAD segment at {segment['p_vaddr']:#x} aligned to "
                f"{segment['p_align']:#x}, less than {arguments.alignment:#x}."
            )


def check_exports(symbols, path):
    patterns = global_names(path.read_text(encoding="utf-8"))
    for name in symbols:
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            yield f"exports {name}, which {path} does not list."
    for pattern in patterns:
        if not fnmatch.filter(symbols, pattern):
            yield f"does not export {pattern}, which {path} lists."


def needed(elf):
    return [
        tag.needed
        for segment in elf.iter_segments("PT_DYNAMIC")
        for tag in segment.iter_tags("DT_NEEDED")
    ]


def exported(elf):
    """Names of the symbols that others can link with."""
    return sorted(
        symbol.name
        for symbol in elf.get_section_by_name(".dynsym").iter_symbols()
        if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] != "STB_LOCAL"
    )


def global_names(text):
    """The names, or patterns, in the `global` part of a linker's version script."""
    text = re.sub(r"/\*.*?\*/|#[^\n]*", "", text, flags=re.DOTALL)
    part = re.search(r"global:(.*?)(?:local:|\})", text, flags=re.DOTALL)
    return [name.strip() for name in part[1].split(";") if name.strip()] if part else []


def glibc_versions(elf):
    """Each version of glibc needed: (its number, its name, " for a symbol" that asks for it)."""
    section = elf.get_section_by_name(".gnu.version_r")
    if section is None:
        return []
    users = {}
    for index, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
        entry = elf.get_section_by_name(".gnu.version").get_symbol(index)
        users.setdefault(entry["ndx"], symbol.name)
    found = []
    for _, versions in section.iter_versions():
        for entry in versions:
            number = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", entry.name)
            parsed = tuple(map(int, number.groups())) if number else UNNUMBERED.get(entry.name)
            if parsed:
                user = users.get(entry["vna_other"])
                found.append((parsed, entry.name, f" for {user}" if user else ""))
    return sorted(found)


def names(text):
    return [name for name in text.split(",") if name]


def version(text):
    if not re.fullmatch(r"\d+\.\d+", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a version such as 2.27")
    return tuple(map(int, text.split(".")))


if __name__ == "__main__":
    sys.exit(main())
