package android.content;

import android.content.res.AssetManager;
import java.io.File;

/** As much of Android and of LiteRT 1.x as our classes and the example call: no code of theirs. */
public class Context {
  private final File folder;

  public Context() {
    this(null);
  }

  /** For tests: an app whose folder for generated code is this one. */
  public Context(File folder) {
    this.folder = folder;
  }

  public File getCodeCacheDir() {
    return folder;
  }

  public AssetManager getAssets() {
    throw new UnsupportedOperationException();
  }
}
