"""Write one of the networks of `bench.networks` as a .tflite file: NAME PATH."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.networks import build


def main() -> None:
    name, path = sys.argv[1], Path(sys.argv[2])
    print(f"building {name} with random weights", flush=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(build(name))


if __name__ == "__main__":
    main()
