package clgpu.delegate;

import android.content.Context;
import java.util.HashMap;
import java.util.Map;
import org.tensorflow.lite.Delegate;
import org.tensorflow.lite.DelegateFactory;
import org.tensorflow.lite.RuntimeFlavor;

/**
 * Creates a {@link ClgpuDelegate} for each interpreter that has it in {@code
 * InterpreterApi.Options.addDelegateFactory()}. The interpreter closes its delegate when it is
 * closed.
 */
public final class ClgpuDelegateFactory implements DelegateFactory {
  private final Map<String, String> options;

  /** The options are those of {@link ClgpuDelegate#ClgpuDelegate(Map)}. */
  public ClgpuDelegateFactory(Map<String, String> options) {
    this.options = new HashMap<>(options);
  }

  /** Keeps compiled kernels as {@link ClgpuDelegate#ClgpuDelegate(Context, Map)} does. */
  public ClgpuDelegateFactory(Context context, Map<String, String> options) {
    this(ClgpuDelegate.withCache(context, options));
  }

  /**
   * Called by the interpreter.
   *
   * @throws IllegalArgumentException as the constructors of {@link ClgpuDelegate}; ask {@link
   *     ClgpuDelegate#isSupported} before
   */
  @Override
  public Delegate create(RuntimeFlavor flavor) {
    return new ClgpuDelegate(options);
  }
}
