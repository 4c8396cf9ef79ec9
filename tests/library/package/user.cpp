// A C++ program that found the library by find_package().
#include <clgpu_delegate.h>

#include <iostream>

int main() { std::cout << clgpu_delegate_version() << '\n'; }
