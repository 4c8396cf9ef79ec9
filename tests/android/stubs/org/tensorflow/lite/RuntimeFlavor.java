package org.tensorflow.lite;

public enum RuntimeFlavor {
  APPLICATION,
  SYSTEM,
}
