package android.content.res;

import java.io.IOException;

public final class AssetManager {
  public AssetFileDescriptor openFd(String name) throws IOException {
    throw new UnsupportedOperationException();
  }
}
