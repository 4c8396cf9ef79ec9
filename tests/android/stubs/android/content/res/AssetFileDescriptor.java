package android.content.res;

import java.io.Closeable;
import java.io.FileDescriptor;
import java.io.IOException;

public class AssetFileDescriptor implements Closeable {
  public FileDescriptor getFileDescriptor() {
    throw new UnsupportedOperationException();
  }

  public long getStartOffset() {
    throw new UnsupportedOperationException();
  }

  public long getLength() {
    throw new UnsupportedOperationException();
  }

  @Override
  public void close() throws IOException {}
}
