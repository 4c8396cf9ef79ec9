// The parts of app/build.gradle.kts that the delegate needs.
android {
  ndkVersion = "27.2.12479018" // r27 or newer
  defaultConfig {
    minSdk = 26
    ndk { abiFilters += listOf("arm64-v8a", "x86_64") }
    externalNativeBuild {
      cmake {
        arguments += listOf("-DANDROID_STL=c++_static", "-DANDROID_SUPPORT_FLEXIBLE_PAGE_SIZES=ON")
        targets += listOf("clgpu_jni", "clgpu_delegate")
      }
    }
  }
  externalNativeBuild { cmake { path = file("src/main/cpp/CMakeLists.txt") } }
}

dependencies {
  implementation("com.google.ai.edge.litert:litert:1.4.0") // org.tensorflow.lite.Interpreter
}
