pluginManagement {
  repositories {
    google()
    mavenCentral()
    gradlePluginPortal()
  }
}

dependencyResolutionManagement {
  repositories {
    google()
    mavenCentral()
  }
}

rootProject.name = "clgpu_example"

include(":app", ":clgpu_delegate")

project(":clgpu_delegate").projectDir = file("../../android") // built from source
