# Frigate whose detector teflon_tfl runs on OpenCL; docs/containers.md. In the folder of the source:
#
#   docker build -f examples/docker/frigate.Dockerfile -t frigate-clgpu .

FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends cmake g++ ninja-build
COPY CMakeLists.txt pyproject.toml /source/
COPY include /source/include
COPY kernels /source/kernels
COPY src_cpp /source/src_cpp
RUN cmake -S /source -B /build -G Ninja -DCLGPU_BUILD_PYTHON=OFF -DCLGPU_BUILD_LIBRARY=ON && cmake --build /build

FROM ghcr.io/blakeblackshear/frigate:stable
COPY --from=build /build/libclgpu_delegate.so /usr/lib/teflon/libteflon.so
