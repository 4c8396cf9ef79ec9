"""Build an AAR, the library as Android apps take it, without Gradle.

    export ANDROID_NDK_HOME=... ANDROID_HOME=...
    python tools/build_aar.py --litert-api litert-api-1.4.2.aar

The native libraries are built with the NDK, or taken from a folder (``--libraries``); javac
compiles the classes. Writes clgpu_delegate-<version>.aar, the same bytes for the same input. Needs
javac and pyelftools.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from xml.etree import ElementTree

from check_library import check
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

ROOT = Path(__file__).resolve().parent.parent
MODULE = ROOT / "android"
ANDROID = "http://schemas.android.com/apk/res/android"
TOOLS = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

# ABI: (the machine as check_library names it, the preset of CMake).
ABIS = {"arm64-v8a": ("aarch64", "android-arm64"), "x86_64": ("x86_64", "android-x86_64")}
SYSTEM = ["libc.so", "libdl.so", "liblog.so", "libm.so"]
# Library: (what it exports, what it needs besides the system's).
LIBRARIES = {
    "libclgpu_delegate.so": (ROOT / "src_cpp/cmake/exports.map", []),
    "libclgpu_jni.so": (MODULE / "src/main/cpp/exports.map", ["libclgpu_delegate.so"]),
    "libLiteRtGpuAccelerator.so": (ROOT / "src_cpp/cmake/exports_litert.map", []),
}


def main():
    arguments = parse()
    facts = read_facts()
    abis = arguments.abi or facts["abis"].split(",")
    interfaces = [arguments.android_jar or newest_platform(), arguments.litert_api]
    # Everything of Java precedes the libraries, which take minutes.
    for path in interfaces:
        if not path.exists():
            fail(f"There is no {path}, which the classes are compiled with.")
    with tempfile.TemporaryDirectory() as folder:
        content = {"classes.jar": compile_classes(interfaces, Path(folder))}
    if arguments.libraries is None:
        build_natives(abis)
        folders = {abi: ROOT / "build" / ABIS[abi][1] for abi in abis}
    else:
        folders = {abi: arguments.libraries / abi for abi in abis}
    natives = {f"jni/{abi}/{name}": folders[abi] / name for abi in abis for name in LIBRARIES}
    check_natives(natives)
    content |= {path: file.read_bytes() for path, file in natives.items()}
    content["AndroidManifest.xml"] = manifest(facts)
    content["R.txt"] = b""  # no resources; the format asks for the file
    content["proguard.txt"] = (MODULE / "consumer-rules.pro").read_bytes()
    content["LICENSE"] = (ROOT / "LICENSE").read_bytes()
    content["META-INF/com/android/build/gradle/aar-metadata.properties"] = (
        f"aarFormatVersion=1.0\naarMetadataVersion=1.0\nminCompileSdk={facts['minCompileSdk']}\n"
    ).encode()
    arguments.output.mkdir(parents=True, exist_ok=True)
    made = arguments.output / f"clgpu_delegate-{version()}.aar"
    made.write_bytes(archive(content))
    print(f"{made}: {made.stat().st_size / 1e6:.1f} MB, {', '.join(abis)}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--litert-api", type=Path, required=True, metavar="FILE",
        help="litert-api of LiteRT 1.x, .aar or .jar, from Maven: "
        "com.google.ai.edge.litert:litert-api",
    )  # fmt: skip
    parser.add_argument(
        "--android-jar", type=Path, metavar="FILE",
        help="android.jar of the SDK; default: that of the newest platform in ANDROID_HOME",
    )  # fmt: skip
    parser.add_argument(
        "--libraries", type=Path, metavar="FOLDER",
        help="a folder that has ABI/*.so already; default: the NDK in ANDROID_NDK_HOME builds them",
    )  # fmt: skip
    parser.add_argument(
        "--abi", action="append", choices=sorted(ABIS), help="only this one; may be repeated"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "dist", metavar="FOLDER")
    return parser.parse_args()


def read_facts():
    lines = (MODULE / "aar.properties").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def version():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return re.search(r'^version = "(.*)"$', text, re.MULTILINE)[1]


def build_natives(abis):
    if not os.environ.get("ANDROID_NDK_HOME"):
        fail(
            "ANDROID_NDK_HOME is not set: set it to the folder of an Android NDK r27 or newer, or "
            "name a folder that has the libraries with --libraries."
        )
    for abi in abis:
        command = [tool("cmake"), "--workflow", "--preset", ABIS[abi][1]]
        if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
            fail(f"The libraries for {abi} cannot be built; CMake's message is above.")


def check_natives(natives):
    findings = []
    for path, file in natives.items():
        _, abi, name = path.split("/")
        exports, needed = LIBRARIES[name]
        rules = argparse.Namespace(
            machine=ABIS[abi][0], needed=[*SYSTEM, *needed], exports=exports, glibc=None,
            alignment=0x4000,
        )  # fmt: skip
        try:
            with file.open("rb") as opened:
                findings += [f"{file} {finding}" for finding in check(ELFFile(opened), rules)]
        except (OSError, ELFError) as error:
            findings.append(f"{file} cannot be read as a shared library: {error}.")
    if findings:
        fail("\n".join(findings))


def compile_classes(interfaces, folder):
    """Return a jar of the compiled classes."""
    sources = sorted((MODULE / "src/main/java").rglob("*.java"))
    paths = [jar_of(path, folder) for path in interfaces]
    classes = folder / "classes"
    command = [
        tool("javac"), "--release", "8", "-encoding", "UTF-8", "-Xlint:all,-options", "-Werror",
        "-cp", os.pathsep.join(map(str, paths)), "-d", classes, *sources,
    ]  # fmt: skip
    if subprocess.run(list(map(str, command)), check=False).returncode != 0:
        fail("The classes cannot be compiled; javac's message is above.")
    files = sorted(classes.rglob("*.class"))
    return archive({file.relative_to(classes).as_posix(): file.read_bytes() for file in files})


def jar_of(path, folder):
    if path.suffix != ".aar":
        return path
    try:
        with zipfile.ZipFile(path) as aar:
            return Path(aar.extract("classes.jar", folder))
    except (OSError, zipfile.BadZipFile, KeyError):
        fail(
            f"{path} is no .aar, a zip file that has classes.jar: take the file of "
            "com.google.ai.edge.litert:litert-api from Google's Maven repository."
        )


def newest_platform():
    sdk = os.environ.get("ANDROID_HOME", "")
    found = {}
    for file in Path(sdk).glob("platforms/android-*/android.jar") if sdk else ():
        if level := re.fullmatch(r"android-(\d+)", file.parent.name):
            found[int(level[1])] = file
    if not found:
        fail(
            "There is no android.jar: set ANDROID_HOME to the folder of an Android SDK that has "
            "platforms/android-35, or name the file with --android-jar."
        )
    return found[max(found)]


def manifest(facts):
    """Return the module's manifest with what Gradle would add to it."""
    ElementTree.register_namespace("android", ANDROID)
    root = ElementTree.parse(MODULE / "src/main/AndroidManifest.xml").getroot()
    root.set("package", facts["namespace"])
    oldest = {f"{{{ANDROID}}}minSdkVersion": facts["minSdk"]}
    root.insert(0, ElementTree.Element("uses-sdk", oldest))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def archive(content):
    """Return a zip file of these paths and bytes, without times of today."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for path, data in sorted(content.items()):
            entry = zipfile.ZipInfo(path, date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            file.writestr(entry, data)
    return stream.getvalue()


def tool(name):
    return shutil.which(name, path=TOOLS) or fail(f"{name} is not on the PATH: install it.")


def fail(message):
    print(message, file=sys.stderr)
    raise SystemExit(1)


if __name__ == "__main__":
    main()
