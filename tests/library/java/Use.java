import android.content.Context;
import clgpu.delegate.ClgpuDelegate;
import clgpu.delegate.ClgpuDelegateFactory;
import java.io.File;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.tensorflow.lite.Delegate;
import org.tensorflow.lite.DelegateFactory;
import org.tensorflow.lite.RuntimeFlavor;

/** The Java classes as an app uses them. Arguments: what to do, the app's folder. */
public class Use {
  private interface Action {
    void run();
  }

  private static void check(boolean condition) {
    if (!condition) throw new AssertionError();
  }

  private static String refused(Class<? extends RuntimeException> type, Action action) {
    try {
      action.run();
    } catch (RuntimeException error) {
      check(type.isInstance(error));
      return error.getMessage();
    }
    throw new AssertionError("nothing was thrown");
  }

  private static String refused(Action action) {
    return refused(IllegalArgumentException.class, action);
  }

  public static void main(String[] arguments) {
    Map<String, String> none = Collections.emptyMap();
    if (arguments[0].equals("refused")) { // no native library, or no OpenCL
      check(!ClgpuDelegate.isSupported());
      check(!ClgpuDelegate.isSupported());
      System.out.println(refused(ClgpuDelegate::new));
      System.out.println(refused(() -> ClgpuDelegate.findDevice(none)));
      return;
    }
    if (arguments[0].equals("memory")) { // a block of a MB is more than there is
      Map<String, String> large =
          Collections.singletonMap("device", new String(new char[1 << 20]));
      for (Action action :
          new Action[] {() -> new ClgpuDelegate(large), () -> ClgpuDelegate.findDevice(large)}) {
        try {
          action.run();
        } catch (OutOfMemoryError error) {
          check(error.getMessage().contains("no memory for the options"));
          continue;
        }
        throw new AssertionError("nothing was thrown");
      }
      return;
    }
    Map<String, String> noKey = Collections.singletonMap(null, "fp16");
    check(refused(() -> new ClgpuDelegate(noKey)).contains("the key of an option is null"));
    Map<String, String> noValue = Collections.singletonMap("precision", null);
    check(refused(() -> ClgpuDelegate.findDevice(noValue)).contains("'precision' is null"));
    if (!ClgpuDelegate.isSupported()) System.exit(77);
    String name = "gr\u00fcn \uD83D\uDE00"; // JNI's own strings are not UTF-8
    Map<String, String> bad = Collections.singletonMap("device", name);
    check(refused(() -> new ClgpuDelegate(bad)).contains(name));
    check(refused(() -> ClgpuDelegate.findDevice(bad)).contains(name));
    String device = ClgpuDelegate.findDevice(none);

    Map<String, String> options = new HashMap<>();
    options.put("profile", "on");
    options.put("precision", "fp16");
    Context context = new Context(new File(arguments[1]));
    ClgpuDelegate delegate = new ClgpuDelegate(context, options);
    check(delegate.getNativeHandle() != 0);
    String report = delegate.explainJson();
    check(report.startsWith("{\"device\":\"" + device + "\""));
    check(report.contains("\"precision\":\"fp16\""));
    check(delegate.profileJson().contains("\"enabled\":true"));
    delegate.close();
    delegate.close();
    for (Action action : new Action[] {delegate::getNativeHandle, delegate::explainJson})
      check(refused(IllegalStateException.class, action).equals("the delegate is closed"));

    DelegateFactory factory =
        new ClgpuDelegateFactory(Collections.singletonMap("cache", "off"));
    Delegate first = factory.create(RuntimeFlavor.APPLICATION);
    Delegate second = factory.create(RuntimeFlavor.SYSTEM);
    check(first.getNativeHandle() != second.getNativeHandle());
    String message =
        refused(IllegalStateException.class, () -> ((ClgpuDelegate) first).profileJson());
    check(message.contains("'profile' as 'on'"));
    first.close();
    second.close();
    check(refused(() -> new ClgpuDelegateFactory(bad).create(null)).contains(name));
  }
}
