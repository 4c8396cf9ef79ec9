"""tools/build_aar.py packs what an app needs, or says what is missing; the example app compiles.

The libraries here have names and no code. test_source_compatibility.py packs those that are
compiled.
"""

from __future__ import annotations

import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.android import sysroot
from tests.jdk import COMPILE

pytest.importorskip("elftools")
from elftools.elf.elffile import ELFFile

from tests.android import aar

ROOT = Path(__file__).resolve().parents[2]
MODULE = ROOT / "android"
APP = ROOT / "examples" / "android"
ANDROID = "{http://schemas.android.com/apk/res/android}"


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the libraries of both ABIs."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        pytest.skip("ziglang is not installed")
    zig = Path(spec.origin).with_name("zig")
    folder = tmp_path_factory.mktemp("libraries")
    for abi, (machine, _) in aar.ABIS.items():
        (folder / abi).mkdir()
        for name, (exports, others) in aar.LIBRARIES.items():
            functions = aar.global_names(exports.read_text())
            needed = tuple(folder / abi / other for other in others)
            target = f"{machine}-linux-android.{sysroot.API}"
            sysroot.make_library(zig, folder / abi / name, functions, needed, target)
    return folder


def build(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k not in ("ANDROID_HOME", "ANDROID_NDK_HOME")}
    command = [sys.executable, ROOT / "tools" / "build_aar.py", *arguments]
    return subprocess.run(
        command, env={**env, **environment}, capture_output=True, text=True, check=False
    )


def test_aar_has_what_an_app_needs(libraries, litert_api, tmp_path):
    # As in an SDK and in Maven: a jar of the newest platform, and an .aar with classes.jar.
    platforms = tmp_path / "sdk" / "platforms"
    for level in ("9", "35"):
        (platforms / f"android-{level}").mkdir(parents=True)
    pack(litert_api / "android", litert_api, platforms / "android-35" / "android.jar")
    (platforms / "android-9" / "android.jar").write_bytes(b"too old")
    pack(litert_api / "org", litert_api, tmp_path / "classes.jar")
    pack(tmp_path / "classes.jar", tmp_path, tmp_path / "litert-api.aar")
    options = ("--libraries", libraries, "--litert-api", tmp_path / "litert-api.aar")
    made = []
    for folder in (tmp_path / "first", tmp_path / "second"):
        result = build(*options, "--output", folder, ANDROID_HOME=str(tmp_path / "sdk"))
        assert result.returncode == 0, result.stderr
        made += folder.glob("clgpu_delegate-*.aar")
    assert len(made) == 2
    assert made[0].read_bytes() == made[1].read_bytes()

    packed = zipfile.ZipFile(made[0])
    natives = [f"jni/{abi}/{name}" for abi in aar.ABIS for name in aar.LIBRARIES]
    assert {name for name in packed.namelist() if name.startswith("jni/")} == set(natives)
    for name in natives:
        machine, _ = aar.ABIS[name.split("/")[1]]
        elf = ELFFile(io.BytesIO(packed.read(name)))
        assert elf["e_machine"] == aar.MACHINES[machine]

    classes = zipfile.ZipFile(io.BytesIO(packed.read("classes.jar")))
    assert set(classes.namelist()) == {
        f"clgpu/delegate/{name}.class"
        for name in ("ClgpuDelegate", "ClgpuDelegate$Libraries", "ClgpuDelegateFactory")
    }
    assert classes.read("clgpu/delegate/ClgpuDelegate.class")[6:8] == b"\x00\x34"  # Java 8

    manifest = ElementTree.fromstring(packed.read("AndroidManifest.xml"))
    assert manifest.get("package") == "clgpu.delegate"
    assert manifest.find("uses-sdk").get(f"{ANDROID}minSdkVersion") == "26"
    wanted = manifest.findall("application/uses-native-library")
    assert {(entry.get(f"{ANDROID}name"), entry.get(f"{ANDROID}required")) for entry in wanted} == {
        (f"lib{name}.so", "false")
        for name in ("OpenCL", "OpenCL-pixel", "OpenCL-car", "vndksupport")
    }
    metadata = packed.read("META-INF/com/android/build/gradle/aar-metadata.properties").decode()
    assert "minCompileSdk=31\n" in metadata  # uses-native-library came with it
    assert packed.read("R.txt") == b""
    assert b"native <methods>" in packed.read("proguard.txt")


def pack(source: Path, base: Path, archive: Path) -> None:
    files = [source] if source.is_file() else sorted(source.rglob("*.class"))
    with zipfile.ZipFile(archive, "w") as made:
        for file in files:
            made.write(file, file.relative_to(base))


@pytest.mark.parametrize(
    ("spoilt", "sentence"),
    [
        ("missing", "libclgpu_jni.so cannot be read as a shared library"),
        ("of x86-64", "libclgpu_jni.so is for x64, not for aarch64."),
        ("other exports", "libclgpu_jni.so exports LiteRtAcceleratorImpl, which"),
    ],
)
def test_library_that_android_would_not_load_is_refused(
    libraries, litert_api, tmp_path, spoilt, sentence
):
    folder = tmp_path / "libraries"
    shutil.copytree(libraries, folder)
    library = folder / "arm64-v8a" / "libclgpu_jni.so"
    if spoilt == "missing":
        library.unlink()
    elif spoilt == "of x86-64":
        shutil.copyfile(folder / "x86_64" / library.name, library)
    else:
        shutil.copyfile(library.with_name("libLiteRtGpuAccelerator.so"), library)
    result = build(
        "--libraries", folder, "--litert-api", litert_api, "--android-jar", litert_api,
        "--output", tmp_path,
    )  # fmt: skip
    assert result.returncode == 1
    assert sentence in result.stderr
    assert not list(tmp_path.glob("*.aar"))


def test_what_is_missing_is_said(libraries, litert_api, tmp_path):
    given = ("--litert-api", litert_api, "--output", tmp_path)
    result = build(*given, "--android-jar", litert_api)
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "ANDROID_NDK_HOME is not set: set it to the folder of an Android" in result.stderr
    result = build(*given, "--libraries", libraries)
    assert "There is no android.jar: set ANDROID_HOME to the folder of an" in result.stderr
    result = build(*given, "--libraries", libraries, "--android-jar", tmp_path / "none.jar")
    assert f"There is no {tmp_path / 'none.jar'}" in result.stderr


@pytest.mark.parametrize("content", ["a page that says 404", "a zip file of something else"])
def test_file_that_is_no_aar_is_refused_before_the_libraries_are_built(
    litert_api, tmp_path, content
):
    wrong = tmp_path / "litert-api.aar"
    if content.startswith("a zip file"):
        pack(litert_api, litert_api, wrong)
    else:
        wrong.write_text(content)
    result = build("--litert-api", wrong, "--android-jar", litert_api, "--output", tmp_path)
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert f"{wrong} is no .aar, a zip file that has classes.jar: take" in result.stderr


def test_missing_javac_is_said_before_the_libraries_are_built(tmp_path):
    given = ("--litert-api", tmp_path, "--android-jar", tmp_path, "--output", tmp_path)
    result = build(*given, PATH=str(tmp_path))
    assert (result.returncode, result.stderr) == (1, "javac is not on the PATH: install it.\n")


def test_example_app_compiles_and_is_what_its_manifest_names(litert_api, tmp_path):
    main = APP / "app" / "src" / "main"
    sources = [*(MODULE / "src" / "main" / "java").rglob("*.java"), *main.rglob("*.java")]
    subprocess.run([*COMPILE, "-cp", litert_api, "-d", tmp_path, *sources], check=True)
    application = ElementTree.parse(main / "AndroidManifest.xml").getroot().find("application")
    namespace = re.search(r'namespace = "(.*)"', (APP / "app" / "build.gradle.kts").read_text())[1]
    for activity in application.findall("activity"):
        name = namespace + activity.get(f"{ANDROID}name")
        assert (tmp_path / f"{name.replace('.', '/')}.class").is_file()
    # Paths that the Gradle files name.
    settings = (APP / "settings.gradle.kts").read_text()
    folder = APP / re.search(r'projectDir = file\("(.*)"\)', settings)[1]
    assert folder.resolve() == MODULE
    module = (MODULE / "build.gradle.kts").read_text()
    for path in re.findall(r'file\("(.*?)"\)', module):
        assert (MODULE / path).is_file()
    assert "ndk {" not in module  # its ABIs would be the whole app's
