// merge.cl - mean and sum of squared deviations of the union of two sets of numbers
//
// MERGE(T, count, mean, square, other_count, other_mean, other_square)  adds the other set to the
//                  first, whose count may be 0; T is float or a vector of floats
// MERGE_ITEMS(T, items, apart, row)  merges the sets (count, mean, square) of `items` work-items, a power
//                  of two, which lie `apart` in the work-group, into the first of them (row 0), by way of the
//                  local arrays counts, means and squares, in pairs
#define MERGE(T, count, mean, square, other_count, other_mean, other_square) \
  do {                                                                       \
    const float total = (count) + (other_count);                             \
    const float share = total > 0.0f ? (other_count) / total : 0.0f;         \
    const T apart = (other_mean) - (mean);                                   \
    (mean) += apart * share;                                                 \
    (square) += (other_square) + apart * apart * ((count) * share);          \
    (count) = total;                                                         \
  } while (0)
#define MERGE_ITEMS(T, items, apart, row)                                             \
  counts[item] = count;                                                               \
  means[item] = mean;                                                                 \
  squares[item] = square;                                                             \
  barrier(CLK_LOCAL_MEM_FENCE);                                                       \
  for (int step = (items) / 2; step > 0; step /= 2) {                                 \
    if ((row) < step) {                                                               \
      const int other = item + step * (apart);                                        \
      MERGE(T, counts[item], means[item], squares[item], counts[other], means[other], \
            squares[other]);                                                          \
    }                                                                                 \
    barrier(CLK_LOCAL_MEM_FENCE);                                                     \
  }
