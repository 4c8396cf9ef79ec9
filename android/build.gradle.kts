// The library as a module of a Gradle build; examples/android includes it.
import java.util.Properties

plugins { id("com.android.library") }

val aar = Properties().apply { file("aar.properties").inputStream().use { load(it) } }

android {
  namespace = aar.getProperty("namespace")
  compileSdk = 35
  ndkVersion = "27.2.12479018" // r27 or newer
  defaultConfig {
    minSdk = aar.getProperty("minSdk").toInt()
    aarMetadata { minCompileSdk = aar.getProperty("minCompileSdk").toInt() }
    consumerProguardFiles("consumer-rules.pro")
    externalNativeBuild {
      cmake {
        // Of this library only: an app with native code for other ABIs keeps it.
        abiFilters += aar.getProperty("abis").split(",")
        arguments += listOf("-DANDROID_STL=c++_static", "-DANDROID_SUPPORT_FLEXIBLE_PAGE_SIZES=ON")
        targets += listOf("clgpu_delegate", "clgpu_jni", "clgpu_accelerator")
      }
    }
  }
  externalNativeBuild { cmake { path = file("../CMakeLists.txt") } }
  compileOptions {
    sourceCompatibility = JavaVersion.VERSION_1_8
    targetCompatibility = JavaVersion.VERSION_1_8
  }
}

dependencies {
  compileOnly("com.google.ai.edge.litert:litert-api:1.4.2") // the app chooses the runtime
}
