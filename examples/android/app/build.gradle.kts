plugins { id("com.android.application") }

android {
  namespace = "com.example.clgpu"
  compileSdk = 35
  defaultConfig {
    applicationId = "com.example.clgpu"
    minSdk = 26
    targetSdk = 35
    versionCode = 1
    versionName = "1.0"
  }
  buildTypes {
    release {
      isMinifyEnabled = true
      proguardFiles(getDefaultProguardFile("proguard-android-optimize.txt"))
    }
  }
  compileOptions {
    sourceCompatibility = JavaVersion.VERSION_1_8
    targetCompatibility = JavaVersion.VERSION_1_8
  }
}

dependencies {
  implementation(project(":clgpu_delegate")) // or an AAR: files("libs/clgpu_delegate-0.1.0.aar")
  implementation("com.google.ai.edge.litert:litert:1.4.2")
}
