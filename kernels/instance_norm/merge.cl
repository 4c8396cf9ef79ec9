// merge.cl - mean and sum of squared deviations of the union of two sets of numbers
//
// MERGE(T, count, mean, square, other_count, other_mean, other_square)  adds the other set to the
//                  first, whose count may be 0; T is float or a vector of floats
#define MERGE(T, count, mean, square, other_count, other_mean, other_square) \
  do {                                                                       \
    const float total = (count) + (other_count);                             \
    const float share = total > 0.0f ? (other_count) / total : 0.0f;         \
    const T apart = (other_mean) - (mean);                                   \
    (mean) += apart * share;                                                 \
    (square) += (other_square) + apart * apart * ((count) * share);          \
    (count) = total;                                                         \
  } while (0)
